"""Secondary indexes of native collections by technique, compared with other stores.

    python -m benchmarks.secondary [--quick] [--documents 1000000] [--rounds 7]
        [--peers sqlite,postgres]

The workload is that of the thesis on secondary indexes of LSM stores: tweets of about 550 bytes
with a user (Zipf-distributed) and a time of creation (which ascends), both indexed. LOOKUP and
RANGELOOKUP return the K tweets that were written last. Tweets are five times as large as memtable
and cache together.

One process (native/engine_bench) has a collection for each technique, one without indexes, and
RocksDB with composite keys (field, complement of the time, id), which reads the tweet that it
replaces and writes one batch per group. RocksDB is used if its library is installed (Debian:
librocksdb7.8). All of them receive the same groups of 32 writes, and take turns in each round. PUT
and the mixes write without a sync, and their times include the background work that they cause;
durable writes sync once per group. Every result is compared with what the generator expects.

SQLite (WAL, synchronous=FULL) is called from Python in this process, and ours from Rust in its own:
neither uses a network. SQLite commits one write after another, ours a group of 32 with one sync.
PostgreSQL and our storage node are both called from Python through their protocols, over one
connection with 32 requests in flight, each write a transaction; the node syncs those in flight
together. Figures named `together` compare with transactions of 32 writes, and have no goals.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.peers.tweet_stores import (
    BULK,
    IN_FLIGHT,
    NodeTweets,
    PostgresTweets,
    TweetPeer,
    TweetRow,
    node_tweets,
    postgres_tweets,
    read_rows,
    sqlite_tweets,
)
from benchmarks.support.native import STORAGE_NODE, built
from benchmarks.support.plot import Line, Plot
from benchmarks.support.report import RESULTS, Report, median
from benchmarks.support.storage_node import running_node
from benchmarks.support.tweet_bench import TweetBench, TweetRounds, running_tweets
from documents.collections.technique_advice import IndexUse, TechniqueAdvice, advise
from documents.technique import DeclaredTechnique
from foundation.json_types import JsonValue

_PLAIN, _ROCKSDB = "none", "rocksdb"
#: The technique of an automatic index until it is advised on.
_INITIAL = DeclaredTechnique.AUTO.initial
#: The technique that is compared with SQLite and PostgreSQL.
_OURS = "lazy"
_MIXES = ("80/15/5/0", "20/70/10/0", "40/15/5/40")
_LIMITS = (1, 10, 100, 0)
_TWEET_BYTES = 550
_FREQUENT = 10
#: Of the ranges by which techniques are compared.
_COMPARED_WIDTH = 100
#: Our times and a peer's, by round.
TimePairs = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class TweetExtent:
    """The extent of the measurement."""

    documents: int
    rounds: int
    #: Of a round; queries for all results are fewer.
    queries: int
    mixed: int
    durable: int
    peers: Sequence[str]
    optimised: bool


class TweetFigures:
    """Reports the rounds of all systems."""

    def __init__(self, report: Report, bench: TweetBench) -> None:
        self._report = report
        self._peer = [name for name in bench.systems if name == _ROCKSDB]
        self.techniques = [n for n in bench.systems if n not in {_PLAIN, _ROCKSDB}]
        self.indexed = [*self.techniques, *self._peer]

    def add(self, name: str, value: float, unit: str, what: str, goal: str = "") -> None:
        """Report a figure."""
        self._report.add(name, value, unit, what, goal)

    def add_rates(self, name: str, what: str, rounds: TweetRounds, systems: Sequence[str]) -> None:
        """Report the rates of systems."""
        for system in systems:
            self.add(f"{name}_{system}_per_s", rounds.rate(system), "/s", f"{what}, {system}")

    def add_times(self, name: str, what: str, rounds: TweetRounds) -> None:
        """Report the times of queries."""
        for system in self.indexed:
            self.add(f"{name}_{system}_us", rounds.micros(system), "µs", f"{what}, {system}")

    def add_peer_ratios(self, name: str, what: str, rounds: TweetRounds) -> None:
        """Compare composite and lazy indexes with RocksDB."""
        for peer in self._peer:
            for technique in ("composite", "lazy"):
                ratio = rounds.ratio(peer, technique)
                self.add(f"{name}_{technique}_vs_{peer}", ratio, "x", f"{what}, speed", ">= 1")


def main() -> None:
    """Measure and report."""
    extent = _extent()
    params: dict[str, object] = {"documents": extent.documents, "rounds": extent.rounds}
    report = Report("secondary", params)
    program = built("rillbase-engine-bench", optimised=extent.optimised)
    with tempfile.TemporaryDirectory(prefix="rillbase-secondary-") as name, ExitStack() as stack:
        directory = Path(name)
        # PostgreSQL runs as another user.
        directory.chmod(0o755)
        bench = stack.enter_context(running_tweets(program, directory, extent.documents))
        figures = TweetFigures(report, bench)
        if _ROCKSDB not in bench.systems:
            _show_progress("rocksdb is left out: its library is not installed")
        _measure_puts(figures, bench, extent)
        bench.dump(directory / "tweets.txt")
        rows = read_rows(directory / "tweets.txt")
        _measure_lookups(figures, bench, extent)
        _measure_ranges(figures, bench, extent)
        if "sqlite" in extent.peers:
            _compare_sqlite(figures, bench, extent, rows, directory)
        _measure_durable(figures, bench, extent)
        _measure_mixes(figures, bench, extent)
        if "postgres" in extent.peers:
            _compare_postgres(figures, extent, rows, directory)
    report.finish()


def _measure_puts(figures: TweetFigures, bench: TweetBench, extent: TweetExtent) -> None:
    _show_progress("put …")
    rounds = bench.measure("fill", extent.documents, 10)
    figures.add_rates("put", "inserts, two indexes", rounds, bench.systems)
    goals = {"composite": "<= 2", "lazy": "<= 2.2", "embedded": "<= 1.15"}
    for name in figures.techniques:
        ratio = rounds.total_ratio(name, _PLAIN)
        goal = goals.get(name, "")
        figures.add(f"put_none_vs_{name}", ratio, "x", "throughput, none ÷ with indexes", goal)
        ratio = rounds.processor_ratio(name, _PLAIN)
        figures.add(f"put_{name}_cpu", ratio, "x", "CPU time, with indexes ÷ none")
    _add_index_bytes(figures, rounds)
    figures.add_peer_ratios("put", "inserts", rounds)


def _add_index_bytes(figures: TweetFigures, rounds: TweetRounds) -> None:
    """Report what the engine wrote for the indexes alone: log, flushes and compactions."""
    plain = rounds.systems[_PLAIN]["engine_bytes"]
    figures.add("written_none", plain / rounds.size, "x", "bytes written ÷ bytes of tweets, none")
    added = {
        name: (rounds.systems[name]["engine_bytes"] - plain) / rounds.size
        for name in figures.techniques
    }
    for name, share in added.items():
        figures.add(f"index_written_{name}", share, "x", f"additional, {name}")
    ratio = added["eager"] / added["composite"]
    figures.add("index_written_eager_vs_composite", ratio, "x", "of the indexes", ">= 10")


def _measure_lookups(figures: TweetFigures, bench: TweetBench, extent: TweetExtent) -> None:
    _show_progress("lookups …")
    measured: dict[int, TweetRounds] = {}
    for limit in _LIMITS:
        queries = extent.queries if limit else max(extent.queries // 10, 2)
        rounds = bench.measure("lookup", "frequent", limit, queries, extent.rounds)
        measured[limit] = rounds
        what = f"a frequent user, {_name(limit)} results"
        figures.add_times(f"lookup_{_name(limit)}", what, rounds)
    ratio = measured[10].ratio("composite", "lazy")
    figures.add("lookup_10_composite_vs_lazy", ratio, "x", "time", ">= 2")
    ratio = measured[0].ratio("lazy", "composite")
    figures.add("lookup_all_lazy_vs_composite", ratio, "x", "time", ">= 1")
    figures.add_peer_ratios("lookup_10", "a frequent user, 10 results", measured[10])
    rounds = bench.measure("lookup", "any", 10, extent.queries, extent.rounds)
    figures.add_times("lookup_any_10", "users as they write, 10 results", rounds)
    mean = measured[0].size / measured[0].operations
    points = {limit or max(mean, 200): rounds for limit, rounds in measured.items()}
    lines = [
        Line(name, [(limit, rounds.micros(name)) for limit, rounds in points.items()])
        for name in figures.indexed
    ]
    title = f"LOOKUP of frequent users among {extent.documents:,} tweets"
    plot = Plot(title, "results, the last point: all", "µs", lines)
    plot.save(RESULTS / "secondary-lookup.svg")


def _measure_ranges(figures: TweetFigures, bench: TweetBench, extent: TweetExtent) -> None:
    _show_progress("ranges …")
    for kind, what in (("users", "users"), ("created", "tweets by their creation")):
        for width in (10, 100, 1000):
            if kind == "users" and width * 30 > extent.documents:
                continue
            queries = max(extent.queries * 10 // width // 5, 2)
            rounds = bench.measure(kind, width, 10, queries, extent.rounds)
            figures.add_times(f"{kind}_{width}", f"a range of {width} {what}, 10 results", rounds)
            if width == _COMPARED_WIDTH:
                _compare_ranges(figures, kind, rounds)


def _compare_ranges(figures: TweetFigures, kind: str, rounds: TweetRounds) -> None:
    """Blocks of tables separate times of creation, and no users."""
    if kind == "created":
        ratio = rounds.ratio("composite", "embedded")
        figures.add("created_composite_vs_embedded", ratio, "x", "time, a range", ">= 1.5")
    else:
        ratio = rounds.ratio("embedded", "composite")
        figures.add("users_embedded_vs_composite", ratio, "x", "time, a range", ">= 10")


def _measure_durable(figures: TweetFigures, bench: TweetBench, extent: TweetExtent) -> None:
    _show_progress("durable writes …")
    rounds = bench.measure("durable", extent.durable * extent.rounds, extent.rounds)
    what = "durable inserts, one sync for 32"
    figures.add_rates("durable", what, rounds, bench.systems)
    figures.add_peer_ratios("durable", what, rounds)


def _measure_mixes(figures: TweetFigures, bench: TweetBench, extent: TweetExtent) -> None:
    for mix in _MIXES:
        _show_progress(f"mix {mix} …")
        before = bench.usage(_INITIAL)
        rounds = bench.measure("mix", mix, extent.mixed, extent.rounds)
        advised = _advised(before, bench.usage(_INITIAL))
        name = "mix_" + mix.replace("/", "_")
        best = max(figures.techniques, key=rounds.rate)
        for system in figures.indexed:
            note = " (the best technique)" if system == best else ""
            what = f"PUT/GET/LOOKUP/update {mix}, {system}{note}"
            figures.add(f"{name}_{system}_per_s", rounds.rate(system), "/s", what)
        ratio = rounds.rate(best) / rounds.rate(advised.technique)
        what = f"{mix}, throughput, the best technique ÷ the advised one ({advised.technique})"
        figures.add(f"{name}_best_vs_advised", ratio, "x", what, "<= 1.1")
        gain = rounds.rate(advised.technique) / rounds.rate(_INITIAL)
        what = f"{mix}, throughput, {advised.technique} ÷ {_INITIAL}; expected: {advised.gain:.3g}"
        figures.add(f"{name}_gain", gain, "x", what)


def _advised(before: dict[str, JsonValue], after: dict[str, JsonValue]) -> TechniqueAdvice:
    """Return what the advisor says of a new index that was used like this."""
    documents, document_bytes = (int(str(after[name])) for name in ("documents", "bytes"))
    use = IndexUse.between(before, after, documents=documents, document_bytes=document_bytes)
    advice = advise(use, _INITIAL)
    if advice is None:
        raise AssertionError(f"a mix has too few operations: {use}")
    return advice


def _compare_sqlite(
    figures: TweetFigures,
    bench: TweetBench,
    extent: TweetExtent,
    rows: Sequence[TweetRow],
    directory: Path,
) -> None:
    _show_progress("sqlite …")
    cache_bytes = extent.documents * _TWEET_BYTES // 5
    with sqlite_tweets(directory, cache_bytes) as peer:
        peer.write_together(rows)
        _check_times(peer, rows, _frequent_users(rows, extent.queries, 0))
        looked_up: TimePairs = []
        written: TimePairs = []
        together: TimePairs = []
        for number in range(extent.rounds):
            users = _frequent_users(rows, 10 * extent.queries, number)
            theirs = _seconds(partial(peer.lookups, users, 10)) / len(users) * 1e6
            rounds = bench.measure("only", _OURS, "lookup", "frequent", 10, len(users), 1)
            looked_up.append((rounds.micros(_OURS), theirs))
            fresh = _more_rows(rows, 2 * extent.durable, number)
            single = _seconds(partial(peer.write, fresh[: extent.durable]))
            grouped = _seconds(partial(_in_groups, peer, fresh[extent.durable :]))
            ours = extent.durable / bench.measure("durable", extent.durable, 1).rate(_OURS)
            written.append((ours, single))
            together.append((ours, grouped))
    _add_comparison(figures, "sqlite", (written, together, looked_up), 0.8)


def _compare_postgres(
    figures: TweetFigures, extent: TweetExtent, rows: Sequence[TweetRow], directory: Path
) -> None:
    _show_progress("postgres …")
    with ExitStack() as stack:
        program = built(STORAGE_NODE, optimised=extent.optimised)
        port = stack.enter_context(running_node(program, "sync"))
        node = stack.enter_context(node_tweets(port))
        postgres = stack.enter_context(postgres_tweets(directory))
        for store in (node, postgres):
            store.fill(rows)
        users = _frequent_users(rows, extent.queries, 0)
        _check_times(postgres, rows, users)
        _check_node(node, rows, users)
        looked_up: TimePairs = []
        written: TimePairs = []
        together: TimePairs = []
        for number in range(extent.rounds):
            users = _frequent_users(rows, 10 * extent.queries, number)
            fresh = _more_rows(rows, 2 * extent.durable, number)
            took: dict[NodeTweets | PostgresTweets, tuple[float, float, float]] = {}
            for store in (node, postgres) if number % 2 else (postgres, node):
                took[store] = _node_round(store, users, fresh)
            lookups, single, grouped = zip(took[node], took[postgres], strict=True)
            looked_up.append((lookups[0] / len(users) * 1e6, lookups[1] / len(users) * 1e6))
            written.append(single)
            together.append(grouped)
    _add_comparison(figures, "postgres", (written, together, looked_up), 3)


def _node_round(
    store: NodeTweets | PostgresTweets, users: Sequence[int], fresh: Sequence[TweetRow]
) -> tuple[float, float, float]:
    """Return the times of lookups, of single writes, and of transactions of several."""
    half = len(fresh) // 2
    return (
        _seconds(partial(store.lookups, users, 10)),
        _seconds(partial(store.write, fresh[:half])),
        _seconds(partial(_in_groups, store, fresh[half:])),
    )


def _add_comparison(
    figures: TweetFigures,
    peer: str,
    pairs: tuple[TimePairs, TimePairs, TimePairs],
    lookup_goal: float,
) -> None:
    written, together, looked_up = (
        median([theirs / ours for ours, theirs in some]) for some in pairs
    )
    store = "the node" if peer == "postgres" else "the collection in process"
    what = f"durable inserts, {store} ÷ {peer}"
    figures.add(f"durable_vs_{peer}", written, "x", f"{what}, each a transaction", ">= 5")
    figures.add(f"durable_together_vs_{peer}", together, "x", f"{what}, transactions of 32")
    own, their = (median([pair[at] for pair in pairs[2]]) for at in (0, 1))
    figures.add(f"lookup_10_beside_{peer}_us", own, "µs", f"a lookup, {store}")
    figures.add(f"lookup_10_{peer}_us", their, "µs", f"a lookup, {peer}")
    what = f"lookups of 10 results, speed, {store} ÷ {peer}"
    figures.add(f"lookup_10_vs_{peer}", looked_up, "x", what, f">= {lookup_goal}")


def _in_groups(peer: TweetPeer, rows: Sequence[TweetRow]) -> None:
    for start in range(0, len(rows), IN_FLIGHT):
        peer.write_together(rows[start : start + IN_FLIGHT])


def _frequent_users(rows: Sequence[TweetRow], count: int, seed: int) -> list[int]:
    of_user = _by_user(rows)
    frequent = sorted(of_user, key=lambda user: -len(of_user[user]))[:_FREQUENT]
    return random.Random(seed).choices(frequent, k=count)


def _by_user(rows: Sequence[TweetRow]) -> dict[int, set[int]]:
    of_user = defaultdict[int, set[int]](set)
    for row in rows:
        of_user[row.user].add(row.id)
    return of_user


def _more_rows(rows: Sequence[TweetRow], count: int, number: int) -> list[TweetRow]:
    """Return new tweets of users that write little, so that those of frequent users stay."""
    first = len(rows) + number * count
    last = rows[-1]
    return [
        TweetRow(
            first + at, -1 - at % 50, last.created_ms + 10 * (first + at), last.updated_ms + at
        )
        for at in range(count)
    ]


def _check_times(peer: TweetPeer, rows: Sequence[TweetRow], users: Sequence[int]) -> None:
    """Compare the times of results with the newest ones: tweets of one time are in any order."""
    of_user = _by_user(rows)
    for user, ids in zip(users, peer.lookups(users, 10), strict=True):
        newest = sorted((rows[number].updated_ms for number in of_user[user]), reverse=True)[:10]
        if [rows[number].updated_ms for number in ids] != newest or not set(ids) <= of_user[user]:
            raise AssertionError(f"tweets of {user}: {ids}")


def _check_node(node: NodeTweets, rows: Sequence[TweetRow], users: Sequence[int]) -> None:
    """Compare with the newest tweets; those that one write has inserted are in ascending order."""
    of_user = _by_user(rows)
    for user, ids in zip(users, node.lookups(users, 10), strict=True):
        expected = sorted(of_user[user], key=lambda number: (-(number // BULK), number))[:10]
        if ids != expected:
            raise AssertionError(f"tweets of {user}: {ids}, not {expected}")


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _name(limit: int) -> str:
    return str(limit) if limit else "all"


def _show_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _extent() -> TweetExtent:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="finish in about two minutes")
    parser.add_argument("--documents", type=int, help="the number of tweets")
    parser.add_argument("--rounds", type=int, help="rounds; the median counts")
    parser.add_argument("--peers", default="sqlite,postgres", help="besides RocksDB")
    parser.add_argument(
        "--unoptimised", action="store_true", help="build without optimisation (for tests)"
    )
    arguments = parser.parse_args()
    documents = arguments.documents or (50_000 if arguments.quick else 1_000_000)
    is_tiny = documents < 10_000
    return TweetExtent(
        documents=documents,
        rounds=arguments.rounds or (5 if arguments.quick else 7),
        queries=10 if is_tiny else 100 if arguments.quick else 30,
        mixed=500 if is_tiny else 2_000,
        durable=32 if is_tiny else 640,
        peers=[peer for peer in arguments.peers.split(",") if peer],
        optimised=not arguments.unoptimised,
    )


if __name__ == "__main__":
    main()
