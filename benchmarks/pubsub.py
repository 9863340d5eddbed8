"""Topics: the stores compared with each other, and the storage node compared with alternatives.

    python -m benchmarks.pubsub [--mix 3:1,1:3] [--ops 2000000] [--rounds 1] [--self-join]
        [--system dual,two,rep,rocksdb,leveldb,postgres] [--granularity variable,fixed]
        [--radii 4,2,1,0.5,0.25] [--each] [--direct-ops 100000]
        [--node-seconds 5] [--hostile] [--plots DIRECTORY] [--quick]

The workload of the paper: operations over 500 by 500 cells with hot spots, subscriptions from ten
seconds ago to ten seconds ahead, publications that live for twenty seconds, `RepQueries` polling
each second. Granularities are compared over a quad tree of depth 5: nodes, where each level is half
as likely as the one below, and circles of several radii (in sides of a leaf), all together and,
with `--each`, one by one. The clock is virtual, at a speed at which live records are five times the
size of memtable and cache together; all stores are `buffered` and tuned alike.

All systems of a run perform the same operations, in alternating sections. A ratio is the median of
seven pairs per round, from the half of the run in which as many records expire as are added: the
other system's mean time per operation divided by that of `dual`, in elapsed time and in CPU time of
the operating thread. The number of reads limits how much faster a store that reads once per
operation can be than one that polls ten times. `--direct-ops` runs so many operations again with
tables that bypass the system's cache. RocksDB and LevelDB do the same with composite keys and by
rewriting lists, through their C libraries, if these are installed.

A run that is terminated early (SIGTERM, as `timeout` sends) prints its results so far.

A native program loads the node over loopback, over two connections with 64 commands in flight each:
publishes compared with publishes in threads directly on the store, PING compared with Valkey, and
the mix 3:1 compared with PostgreSQL, equally durable; and, with `--hostile`, during an attack by
hostile clients. Client and server share the machine's cores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.support.native import built
from benchmarks.support.node_figures import add_enemies, add_node
from benchmarks.support.plot import Line, Plot
from benchmarks.support.report import RESULTS, Report
from benchmarks.support.topic_stores import Answer, CutOffError, Ending, Stores, of

#: By mix: the times of polling and of a second keyspace divided by ours, simple; the latter also
#: with self-joins.
_GOALS = {"3:1": (">= 6", ">= 1", ">= 1.15"), "1:3": (">= 2", ">= 1", ">= 1.05")}
_STORES = ("dual", "two", "rep")
_PEERS = ("rocksdb", "leveldb")
_LEVELS = (1, 2, 3, 4, 5)


def main() -> None:
    """Measure and report."""
    arguments = _arguments()
    params = {name: value for name, value in vars(arguments).items() if name != "plots"}
    report = Report("pubsub", params)
    ending = Ending()
    with ending.awaited():
        try:
            if arguments.ops:
                _add_stores(report, ending, arguments)
        except CutOffError:
            print("interrupted; results so far:", file=sys.stderr, flush=True)
        if arguments.node_seconds and not ending.is_asked():
            _add_node(report, arguments)
    report.finish()


def _add_node(report: Report, arguments: argparse.Namespace) -> None:
    """Load the storage node."""
    timing = {"seconds": arguments.node_seconds, "rounds": arguments.rounds}
    postgres = "postgres" in arguments.system
    add_node(report, **timing, optimised=arguments.optimised, postgres=postgres)
    if arguments.hostile:
        add_enemies(report, **timing, optimised=arguments.optimised)


def _add_stores(report: Report, ending: Ending, arguments: argparse.Namespace) -> None:
    """Compare the stores, and the granularities."""
    with tempfile.TemporaryDirectory(prefix="rillbase-pubsub-") as directory:
        program = built("rillbase-pubsub", example="pubsub_rate", optimised=arguments.optimised)
        stores = Stores(program, Path(directory), arguments.ops, arguments.rounds, ending)
        direct = replace(stores, operations=arguments.direct_ops)
        for mix in arguments.mix:
            _add_simple(report, stores, mix, arguments)
            if arguments.direct_ops:
                _add_direct(report, direct, mix, arguments)
            if arguments.self_join:
                _add_self_join(report, stores, mix, arguments)
            _add_peers(report, stores, mix, arguments)
        if len(arguments.granularity) > 1:
            _add_granularities(report, stores, arguments)


def _stores_of(arguments: argparse.Namespace) -> list[str]:
    return [system for system in arguments.system if system in _STORES]


def _add_simple(report: Report, stores: Stores, mix: str, arguments: argparse.Namespace) -> None:
    """Compare the stores without self-joins."""
    answer = stores.run(mix, _stores_of(arguments))
    name = mix.replace(":", "_")
    polling, second, _ = _GOALS.get(mix, ("", "", ""))
    _add_means(report, answer, f"simple_{name}")
    _add_ratios(report, answer, name, {"two": second, "rep": polling})
    if "rep" in answer["slower_than_first"]:
        report.add(f"rep_ceiling_{name}", answer["polling_ceiling"], "x", "its reads by ours")
        polled, dual = of(answer, "rep"), of(answer, "dual")
        report.add(f"rep_write_{name}_us", polled["publish_us"], "µs", "a write without a read")
        equal = _with_equal_costs(answer, mix)
        report.add(f"rep_equal_{name}", equal, "x", "if it read and wrote at DualDb's costs")
        report.add(f"rep_delay_{name}_ms", polled["delay_ms"], "ms", "mean delay of polling")
        share = 100 * (1 - polled["pairs"] / max(1.0, dual["pairs"]))
        report.add(f"rep_missed_{name}", share, "%", "of DualDb's pairs are missed by polling")
    _plot(answer, f"simple-{mix}", arguments)


def _with_equal_costs(answer: Answer, mix: str) -> float:
    """Return how much longer polling takes if its reads and writes cost as much as ours.

    Polling writes publications only, so one of its publications is only a write; this separates our
    operations into a write and a read.
    """
    wishes, news = (int(part) for part in mix.split(":"))
    whole = of(answer, "dual")["mean_us"]
    write = min(whole, of(answer, "rep")["publish_us"])
    written = write * news / (wishes + news)
    return (written + answer["polling_ceiling"] * (whole - write)) / whole


def _add_direct(report: Report, stores: Stores, mix: str, arguments: argparse.Namespace) -> None:
    """Compare the stores if each block that is not in the cache is read from the disk."""
    answer = stores.run(mix, _stores_of(arguments), "--direct", "1")
    name = f"direct_{mix.replace(':', '_')}"
    polling, second, _ = _GOALS.get(mix, ("", "", ""))
    _add_means(report, answer, name)
    _add_ratios(report, answer, name, {"two": second, "rep": polling})
    for system in answer["systems"]:
        blocks = system["blocks_read"] / stores.operations
        report.add(f"{system['system']}_{name}_blocks", blocks, "", "blocks read per operation")


def _add_self_join(report: Report, stores: Stores, mix: str, arguments: argparse.Namespace) -> None:
    """Compare the stores whose operations also match their own kind."""
    answer = stores.run(mix, ["dual", "two"], "--self-join")
    name = f"self_join_{mix.replace(':', '_')}"
    _add_means(report, answer, name)
    _add_ratios(report, answer, name, {"two": _GOALS.get(mix, ("", "", ""))[2]})
    _plot(answer, f"self-join-{mix}", arguments)


def _add_peers(report: Report, stores: Stores, mix: str, arguments: argparse.Namespace) -> None:
    """Compare with key-value stores whose libraries are installed."""
    systems = [system for system in arguments.system if system in _PEERS]
    if not systems:
        return
    peers = [name for peer in systems for name in (peer, f"{peer}-rewriting")]
    answer = stores.run(mix, ["dual", *peers])
    name = f"beside_peers_{mix.replace(':', '_')}"
    _add_means(report, answer, name)
    _add_ratios(report, answer, name, {})
    ratios = answer["slower_than_first"]
    if ratios:
        best = min(ratios.values())
        report.add(f"dual_vs_best_peer_{name}", best, "x", "the best of them ÷ DualDb", ">= 1")


def _add_ratios(report: Report, answer: Answer, name: str, goals: Mapping[str, str]) -> None:
    """Record how much longer the others take than the first."""
    first = answer["systems"][0]["system"]
    for system, ratio in answer["slower_than_first"].items():
        goal = goals.get(system, "")
        report.add(f"{first}_vs_{system}_{name}", ratio, "x", f"{system} ÷ {first}", goal)
        processor = answer["processor_by_first"][system]
        what = f"{system} ÷ {first}, processor time"
        report.add(f"{first}_vs_{system}_{name}_processor", processor, "x", what)


def _add_means(report: Report, answer: Answer, name: str) -> None:
    for system in answer["systems"]:
        report.add(f"{system['system']}_{name}_us", system["mean_us"], "µs", "an operation, mean")
    first = of(answer, answer["systems"][0]["system"])
    report.add(f"live_{name}_mb", first["live_bytes"] / 1e6, "MB", "live at the end")
    if first["done"] < 1:
        report.add(f"done_{name}", 100 * first["done"], "%", "of the operations, then interrupted")


def _add_granularities(report: Report, stores: Stores, arguments: argparse.Namespace) -> None:
    """Compare the encodings of areas."""
    runs = [
        ("cells", ">= 3", ("cells",)),
        ("circles", ">= 2", ("circles", "--radii", arguments.radii)),
    ]
    if arguments.each:
        runs += [(f"cells_{level}", "", ("cells", "--level", str(level))) for level in _LEVELS]
        radii = arguments.radii.split(",")
        runs += [(f"circles_{radius}", "", ("circles", "--radii", radius)) for radius in radii]
    whole = stores.operations
    for name, goal, places in runs:
        # There are many single radii: each gets a quarter of the work.
        part = replace(stores, operations=whole if goal else max(1, whole // 4))
        answer = part.run("1:1", arguments.granularity, "--places", *places)
        _add_means(report, answer, name)
        _add_ratios(report, answer, name, dict.fromkeys(arguments.granularity, goal))
        if goal:
            _plot(answer, name, arguments)


def _plot(answer: Answer, name: str, arguments: argparse.Namespace) -> None:
    """Draw the time of an operation over the course of the run."""
    lines = []
    for system in answer["systems"]:
        part = arguments.ops / max(1.0, system["parts"])
        points = [(part * (number + 1), mean) for number, mean in enumerate(system["course_us"])]
        lines.append(Line(system["system"], points))
    plot = Plot(f"Time of an operation, {name}", "operations done", "µs an operation", lines)
    plot.save(arguments.plots / f"pubsub-{name.replace(':', '-')}.svg")


def _names(text: str) -> list[str]:
    return text.split(",")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.pubsub", description="Measure topics and the storage node."
    )
    parser.add_argument("--mix", default=["3:1", "1:3"], type=_names)
    parser.add_argument("--ops", type=int, default=2_000_000, help="0: only measure the node")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--system", default=[*_STORES, *_PEERS, "postgres"], type=_names)
    parser.add_argument("--self-join", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--granularity", default=["variable", "fixed"], type=_names)
    parser.add_argument("--radii", default="4,2,1,0.5,0.25")
    parser.add_argument("--each", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--direct-ops", type=int, default=100_000, help="0: without")
    parser.add_argument("--node-seconds", type=int, default=5, help="0: do not measure the node")
    parser.add_argument("--hostile", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--plots", type=Path, default=RESULTS)
    parser.add_argument("--quick", action="store_true", help="about a minute")
    parser.add_argument(
        "--unoptimised",
        dest="optimised",
        action="store_false",
        help="build without optimisation, for tests",
    )
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.ops = min(arguments.ops, 40_000)
        arguments.direct_ops = min(arguments.direct_ops, 10_000)
        arguments.rounds, arguments.each, arguments.hostile = 1, False, False
        arguments.node_seconds = min(arguments.node_seconds, 2)
    return arguments


if __name__ == "__main__":
    main()
