"""Topics: the stores beside one another, and the storage node beside what people use instead.

    python -m benchmarks.pubsub [--mix 3:1,1:3] [--ops 2000000] [--rounds 3] [--self-join]
        [--system dual,two,rep] [--granularity variable,fixed]
        [--radii 4,2,1,0.5,0.25] [--each-radius]
        [--node-seconds 5] [--plot FILE] [--quick]

The workload of the paper: operations over 500 by 500 cells with hot spots, subscriptions from ten
seconds ago to ten seconds ahead, publications that live for twenty, `RepQueries` polling each
second. Granularities are compared over a quad tree of depth 5: nodes of which each level is half
as likely as the one below, and circles of some radii (in sides of a leaf), all and one by one. The
clock is virtual and as fast as live records need it to be several times memtable and cache; all
stores are `buffered` and tuned alike. A ratio is the median, over the rounds, of another's mean
time for an operation by that of `dual`. No store that reads once an operation can be faster than
one that polls ten times by more than the ceiling: the number of reads.

The node is loaded over loopback by a native program, over two connections with 64 commands each
under way: publishes beside the same in threads on the store itself, PING beside Valkey's, and the
mix 3:1 beside PostgreSQL, equally durable. Client and server share the machine's cores.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.peers import postgres_topics
from benchmarks.support.native import built
from benchmarks.support.plot import Line, Plot
from benchmarks.support.report import RESULTS, Report, median
from benchmarks.support.storage_node import Loader, running_node, running_valkey
from benchmarks.support.topic_stores import Answer, Stores, of

#: By mix: polling's and the second keyspace's time by ours, simple; the latter with self-joins.
_GOALS = {"3:1": (">= 6", ">= 1", ">= 1.15"), "1:3": (">= 2", ">= 1", ">= 1.05")}
_PIPELINE = 64


def main() -> None:
    """Measure and report."""
    arguments = _arguments()
    params = {name: value for name, value in vars(arguments).items() if name != "plot"}
    report = Report("pubsub", params)
    with tempfile.TemporaryDirectory(prefix="rillbase-pubsub-") as directory:
        program = built("rillbase-pubsub", example="pubsub_rate", optimised=arguments.optimised)
        stores = Stores(program, Path(directory), arguments.ops, arguments.rounds)
        for mix in arguments.mix:
            _add_simple(report, stores, mix, arguments)
            if arguments.self_join:
                _add_self_join(report, stores, mix)
        if len(arguments.granularity) > 1:
            _add_granularities(report, stores, arguments)
    if arguments.node_seconds:
        _add_node(report, arguments)
    report.finish()


def _add_simple(report: Report, stores: Stores, mix: str, arguments: argparse.Namespace) -> None:
    """Compare the stores without self-joins."""
    answer = stores.run(mix, arguments.system)
    name = mix.replace(":", "_")
    polling, second, _ = _GOALS.get(mix, ("", "", ""))
    _add_means(report, answer, f"simple_{name}")
    ratios = answer["slower_than_first"]
    if "two" in ratios:
        report.add(f"dual_vs_two_{name}", ratios["two"], "x", "TwoDb's time ÷ DualDb's", second)
    if "rep" in ratios:
        report.add(f"dual_vs_rep_{name}", ratios["rep"], "x", "polling's time ÷ ours", polling)
        ceiling = answer["polling_ceiling"]
        report.add(f"rep_ceiling_{name}", ceiling, "x", "its reads by ours")
        polled, dual = of(answer, "rep"), of(answer, "dual")
        report.add(f"rep_delay_{name}_ms", polled["delay_ms"], "ms", "until polling tells, mean")
        share = 100 * (1 - polled["pairs"] / max(1.0, dual["pairs"]))
        report.add(f"rep_missed_{name}", share, "%", "of DualDb's pairs, polling tells fewer")
    if arguments.plot:
        _plot(answer, mix, arguments.ops, arguments.plot)


def _add_self_join(report: Report, stores: Stores, mix: str) -> None:
    """Compare the stores whose operations also find their like."""
    answer = stores.run(mix, ["dual", "two"], "--self-join")
    name = mix.replace(":", "_")
    goal = _GOALS.get(mix, ("", "", ""))[2]
    _add_means(report, answer, f"self_join_{name}")
    ratio = answer["slower_than_first"]["two"]
    report.add(f"self_join_dual_vs_two_{name}", ratio, "x", "TwoDb's time ÷ DualDb's", goal)


def _add_means(report: Report, answer: Answer, name: str) -> None:
    for found in answer["systems"]:
        report.add(f"{found['system']}_{name}_us", found["mean_us"], "µs", "an operation, mean")
    live = of(answer, answer["systems"][0]["system"])["live_bytes"] / 1e6
    report.add(f"live_{name}_mb", live, "MB", "alive at the end; memtable and cache are 4 MiB each")


def _add_granularities(report: Report, stores: Stores, arguments: argparse.Namespace) -> None:
    """Compare how areas are written."""
    systems = arguments.granularity
    answer = stores.run("1:1", systems, "--places", "cells")
    _add_granularity(report, answer, "cells", ">= 3")
    answer = stores.run("1:1", systems, "--places", "circles", "--radii", arguments.radii)
    _add_granularity(report, answer, "circles", ">= 2")
    for radius in arguments.radii.split(",") if arguments.each_radius else ():
        answer = stores.run("1:1", systems, "--places", "circles", "--radii", radius)
        _add_granularity(report, answer, f"circles_{radius}", "")


def _add_granularity(report: Report, answer: Answer, name: str, goal: str) -> None:
    for found in answer["systems"]:
        report.add(f"{found['system']}_{name}_us", found["mean_us"], "µs", "an operation, mean")
    for system, ratio in answer["slower_than_first"].items():
        first = answer["systems"][0]["system"]
        report.add(f"{first}_vs_{system}_{name}", ratio, "x", f"{system} ÷ {first}", goal)


def _add_node(report: Report, arguments: argparse.Namespace) -> None:
    """Load the storage node, and the others beside it."""
    program = built("rillbase-node", optimised=arguments.optimised)
    load = built("rillbase-node", example="node_load", optimised=arguments.optimised)
    loader = Loader(load, arguments.node_seconds)
    for durability, goal in (("buffered", ">= 0.5"), ("sync", ">= 0.5")):
        rates = []
        for _ in range(arguments.rounds):
            alone = loader.embedded(durability, "publish")
            with running_node(program, durability) as port:
                rates.append((loader.rate(port, "publish", _PIPELINE, "bench"), alone))
        behind, alone = median([rate for rate, _ in rates]), median([rate for _, rate in rates])
        report.add(f"node_publish_{durability}_per_s", behind, "/s", "publishes over loopback")
        report.add(f"embedded_publish_{durability}_per_s", alone, "/s", "publishes in two threads")
        ratio = median([one / other for one, other in rates])
        report.add(f"node_vs_embedded_{durability}", ratio, "x", "over loopback ÷ embedded", goal)
    _add_ping(report, program, loader, arguments.rounds)
    _add_postgres(report, program, loader, arguments)


def _add_ping(report: Report, program: Path, loader: Loader, rounds: int) -> None:
    rates = []
    with running_node(program, "buffered") as port, running_valkey() as other:
        for _ in range(rounds):
            ours = loader.rate(port, "ping", _PIPELINE, "bench")
            rates.append((ours, loader.rate(other, "ping", _PIPELINE)))
    report.add("ping_per_s", median([rate for rate, _ in rates]), "/s", "PING, ours")
    report.add("valkey_ping_per_s", median([rate for _, rate in rates]), "/s", "PING, Valkey's")
    ratio = median([ours / theirs for ours, theirs in rates])
    report.add("ping_vs_valkey", ratio, "x", "ours ÷ Valkey's, same client", ">= 0.8")


def _add_postgres(
    report: Report, program: Path, loader: Loader, arguments: argparse.Namespace
) -> None:
    with running_node(program, "buffered") as port:
        ours = loader.rate(port, "mixed", _PIPELINE, "bench")
    theirs = postgres_topics.rate(arguments.node_seconds, loader.connections)
    report.add("node_mixed_per_s", ours, "/s", "three subscriptions to a publication, ours")
    report.add("postgres_mixed_per_s", theirs, "/s", "the same, PostgreSQL's")
    report.add("node_vs_postgres", ours / theirs, "x", "ours ÷ PostgreSQL's", ">= 10")


def _plot(answer: Answer, mix: str, operations: int, path: Path) -> None:
    """Draw the time of an operation over the course of the run."""
    lines = []
    for found in answer["systems"]:
        part = operations / max(1, len(found["course_us"]))
        points = [(part * (number + 1), mean) for number, mean in enumerate(found["course_us"])]
        lines.append(Line(found["system"], points))
    title = f"Time of an operation, {mix} subscriptions to publications"
    plot = Plot(title, "operations done", "µs an operation", lines)
    plot.save(path.with_name(f"{path.stem}-{mix.replace(':', '-')}.svg"))


def _names(text: str) -> list[str]:
    return text.split(",")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.pubsub", description="Measure topics and the storage node."
    )
    parser.add_argument("--mix", default=["3:1", "1:3"], type=_names)
    parser.add_argument("--ops", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--system", default=["dual", "two", "rep"], type=_names)
    parser.add_argument("--self-join", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--granularity", default=["variable", "fixed"], type=_names)
    parser.add_argument("--radii", default="4,2,1,0.5,0.25")
    parser.add_argument("--each-radius", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--node-seconds", type=int, default=5, help="0: without the node")
    parser.add_argument("--plot", type=Path, default=RESULTS / "pubsub.svg")
    parser.add_argument("--quick", action="store_true", help="about a minute")
    parser.add_argument(
        "--unoptimised", dest="optimised", action="store_false", help="tests need no fast program"
    )
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.ops = min(arguments.ops, 40_000)
        arguments.rounds, arguments.each_radius = 1, False
        arguments.node_seconds = min(arguments.node_seconds, 2)
    return arguments


if __name__ == "__main__":
    main()
