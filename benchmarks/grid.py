"""Event layer → grid → notification, with the paper's workload.

    python -m benchmarks.grid [--queries 1500,29000] [--writes 1000] [--seconds 60]
        [--kind range,equality,regex,geo,text,mixed,residual] [--sorted PERCENT]
        [--partitions 1x2,1x4] [--peers polling,tailing] [--plot FILE] [--quick] [--beside DIR]

Documents have five strings of ten characters and five integers, one of them unique and random.
Queries of the kind `range` are `random >= i AND random < j`; other kinds match one value, a text
fragment, a place or a term, or are residual. Whatever the kind and the number of queries, about 17
match per second. `--sorted` gives this percentage of queries an order and a window.

The benchmark starts a separate Valkey, filter nodes and sort nodes as processes, and a native
program that registers the queries in bulk and then writes and receives. There is no PostgreSQL:
nodes start without documents. Latency is measured from the time at which a write was due until its
notification was read. All combinations of several values of options are measured in turn.

`--peers` also measures how many queries the usual alternatives sustain, at the first rate of
`--writes`: `tailing` evaluates every query for every write (p99 of 20 ms, the rate reached, nothing
lost), `polling` runs every query on PostgreSQL once a second.

`--decode` measures the latency of a source instead: from a commit by SQL in a tenant's PostgreSQL,
at the first rate of `--writes`, through its log, the collection that follows the table and the
whole stack, to the event on a WebSocket (benchmarks/support/decoding.py).

`--copy` measures the relay instead: the latency of publishing a write while a source copies a table
at full speed, divided by the latency otherwise; in one process, or in two
(benchmarks/support/copying.py).

`--beside DIR` compares with another checkout of the repository at an earlier commit, which has to
be set up: rounds of both alternate (benchmarks/support/beside.py).
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import TypeVar

from benchmarks.peers import polling
from benchmarks.support import beside, copying, decoding
from benchmarks.support.grid_run import GridEpoch, GridResults, Run, measure
from benchmarks.support.native import built
from benchmarks.support.plot import Line, Mark, Plot
from benchmarks.support.report import Report, percentile

_Key = TypeVar("_Key", bound=Hashable)

KINDS = ("range", "equality", "regex", "geo", "text", "mixed", "residual")
PEERS = ("polling", "tailing")
P99_MS = 20.0
DECODE_P99_MS = 30.0
DECODE_STAGES = {
    "commit": "of which, until the commit was acknowledged",
    "to_stream": "then until it was in a write stream: decoded, and committed here",
    "to_log": "then until a node published its notification",
    "to_client": "then until its event was received",
}
#: A rate counts as reached if this share of it was.
_KEPT = 0.99
#: Tailing is tried with so many queries first, and then with more until it fails.
_FIRST_TAILED = 1_000
_MOST_TAILED = 1_000_000
#: The precision of the search for tailing's limit.
_CLOSE = 1.25
_PEER_SECONDS = 5


def main() -> None:
    """Measure each combination separately."""
    if beside.compared("grid"):
        return
    arguments = _arguments()
    partitions = [_shape(grid) for grid in arguments.partitions]
    params = {**vars(arguments), "partitions": partitions, "plot": str(arguments.plot or "")}
    report = Report("grid", beside.without_options(params))
    if arguments.copy:
        _copy(report, arguments.copy)
        report.finish()
        return
    if arguments.decode:
        _decode(report, arguments.writes[0], arguments.seconds)
        report.finish()
        return
    program = built("rillbase-grid-nodes", example="grid_load", optimised=not arguments.unoptimised)
    measured: dict[Run, GridResults] = {}
    for run in _runs(arguments):
        print(f"{_name(run)} …", file=sys.stderr)
        measured[run] = measure(program, run)
        _add(report, run, measured[run])
    _compare_numbers(report, measured)
    _compare_partitions(report, measured)
    limits = _measure_peers(report, program, arguments)
    if arguments.plot:
        _plot(measured, limits).save(arguments.plot)
    report.finish()


def _copy(report: Report, how: str) -> None:
    """Measure the relay during a source's copy."""
    alone, beside_copy, rate = copying.measure(
        ["background"] if how == "together" else ["relay", "sources"]
    )
    report.add("copy_rows_per_s", rate, "/s", "rows that the source copied")
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        before_ms, ms = percentile(alone, share), percentile(beside_copy, share)
        report.add(f"copy_relay_alone_{label}_ms", before_ms, "ms", f"relay without it, {label}")
        report.add(f"copy_relay_{label}_ms", ms, "ms", f"relay during it, {label}")
        goal = "<= 1.2" if label == "p99" else ""
        report.add(f"copy_ratio_{label}", ms / before_ms, "x", "of the two", goal)


def _decode(report: Report, writes: int, seconds: int) -> None:
    """Measure commits by SQL in a tenant's PostgreSQL."""
    decoded = decoding.measure(writes, seconds)
    name = f"decode_{writes}_commits"
    least = f">= {_KEPT * writes:g}"
    report.add(f"{name}_per_s", decoded.commits_per_s, "/s", "committed by SQL", least)
    report.add(f"{name}_delivered", decoded.delivered, "", "events that came")
    what = "status, reset and end frames, and answers that differ from the table"
    report.add(f"{name}_disturbed", decoded.disturbances, "", what, "<= 0")
    for label, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)):
        goal = f"<= {DECODE_P99_MS:g}" if label == "p99" else ""
        value = percentile(decoded.latencies_ms, share)
        report.add(
            f"{name}_{label}_ms", value, "ms", f"from when the statement was due, {label}", goal
        )
    for stage, what in DECODE_STAGES.items():
        for label, share in (("p50", 0.5), ("p99", 0.99)):
            value = percentile(decoded.stages_ms[stage] or [0.0], share)
            report.add(f"{name}_{stage}_{label}_ms", value, "ms", f"{what}, {label}")
    for service, used_s in decoded.cpu_s.items():
        cores = used_s / seconds
        report.add(f"{name}_{service}_cores", cores, "cores", f"used by {service}")


def _runs(arguments: argparse.Namespace) -> Iterator[Run]:
    for kind, grid, writes, queries in itertools.product(
        arguments.kind, arguments.partitions, arguments.writes, arguments.queries
    ):
        yield Run(kind, queries, writes, arguments.seconds, grid, arguments.sorted)


def _name(run: Run) -> str:
    return f"{run.kind}_{run.queries}_queries_{run.writes}_writes_{_shape(run.grid)}"


def _shape(grid: GridEpoch) -> str:
    return f"{grid.query_partitions}x{grid.write_partitions}"


def _add(report: Report, run: Run, measured: GridResults) -> None:
    name, load = _name(run), measured.load
    report.add(f"{name}_p50_ms", load["p50_ms"], "ms", "median latency")
    report.add(f"{name}_p95_ms", load["p95_ms"], "ms", "95th percentile")
    goal = f"<= {P99_MS:g}"
    report.add(f"{name}_p99_ms", load["p99_ms"], "ms", "99th percentile", goal)
    report.add(f"{name}_max_ms", load["max_ms"], "ms", "the slowest notification")
    report.add(f"{name}_average_ms", load["average_ms"], "ms", "on average")
    least = f">= {_KEPT * run.writes:g}"
    report.add(f"{name}_writes_per_s", load["writes_per_s"], "/s", "appended", least)
    report.add(f"{name}_expected", load["expected"], "", "expected notifications")
    report.add(f"{name}_delivered", load["delivered"], "", "notifications that came")
    difference = abs(load["expected"] - load["delivered"])
    report.add(f"{name}_lost", difference, "", "expected and not delivered, or the reverse", "<= 0")
    rate = load["registered_per_s"]
    report.add(f"{name}_registered_per_s", rate, "/s", "queries registered", ">= 20000")
    report.add(f"{name}_index_bytes", measured.index_bytes, "B", "of index for a query, a node")
    busiest = measured.node_us_per_write()
    report.add(f"{name}_node_us", busiest, "µs", "CPU of the busiest filter node per write")
    # Afterwards, only outstanding notifications are received.
    written_s = load["writes"] / load["writes_per_s"]
    filters = sum(measured.filter_cpu_s) / written_s
    report.add(f"{name}_filters_cores", filters, "cores", "used by the filter nodes")
    for other, used_s in measured.cpu_s.items():
        cores = used_s / written_s
        report.add(f"{name}_{other.replace(':', '_')}_cores", cores, "cores", f"used by {other}")
    if run.kind == "residual":
        evaluated = run.queries * load["writes"] / sum(measured.filter_cpu_s)
        what = "evaluations per core of the filter nodes"
        report.add(f"{name}_evaluations_per_s", evaluated, "/s", what, ">= 20000000")


def _compare_numbers(report: Report, measured: dict[Run, GridResults]) -> None:
    """Compare the cost of a write with the most queries and with the fewest."""
    for (kind, grid, writes), several in _groups(
        measured, lambda run: (run.kind, run.grid, run.writes), lambda run: run.queries
    ):
        fewest, most = several[0], several[-1]
        if kind == "residual" or fewest.queries == most.queries:
            continue
        cost = measured[most].filters_us_per_write() / measured[fewest].filters_us_per_write()
        report.add(
            f"{kind}_{writes}_writes_{_shape(grid)}_cost_ratio",
            cost,
            "",
            f"CPU a write among {most.queries:,} queries ÷ among {fewest.queries:,}",
            "<= 2",
        )


def _compare_partitions(report: Report, measured: dict[Run, GridResults]) -> None:
    """Compare the busiest node's work with that of fewer nodes."""
    for (kind, queries, writes), several in _groups(
        measured,
        lambda run: (run.kind, run.queries, run.writes),
        lambda run: run.grid.query_partitions * run.grid.write_partitions,
    ):
        for fewer, more in itertools.pairwise(several):
            ratio = measured[more].node_us_per_write() / measured[fewer].node_us_per_write()
            shapes = f"{_shape(fewer.grid)}_to_{_shape(more.grid)}"
            report.add(
                f"{kind}_{queries}_queries_{writes}_writes_{shapes}",
                ratio,
                "",
                "work of the busiest node ÷ that with fewer nodes",
                "<= 0.6",
            )


def _groups(
    measured: dict[Run, GridResults], alike: Callable[[Run], _Key], order: Callable[[Run], int]
) -> list[tuple[_Key, list[Run]]]:
    """Return the comparable runs, each group in order."""
    keyed: dict[_Key, list[Run]] = {}
    for run in measured:
        keyed.setdefault(alike(run), []).append(run)
    return [(key, sorted(several, key=order)) for key, several in keyed.items()]


def _measure_peers(
    report: Report, program: Path, arguments: argparse.Namespace
) -> dict[str, float]:
    limits: dict[str, float] = {}
    writes, seconds = arguments.writes[0], min(arguments.seconds, _PEER_SECONDS)
    if "tailing" in arguments.peers:
        print("tailing …", file=sys.stderr)
        limits["evaluating all"] = _tailing(program, arguments, writes, seconds)
        what = f"sustained if each is evaluated for each write, p99 ≤ {P99_MS:g} ms"
        report.add("tailing_queries", limits["evaluating all"], "", what)
    if "polling" in arguments.peers:
        print("polling …", file=sys.stderr)
        polled = polling.measure(writes, seconds)
        limits["polling each second"] = polled.queries_per_s
        what = "sustained if each is run on PostgreSQL every second"
        report.add("polling_queries", polled.queries_per_s, "", what)
        what = "inserted meanwhile"
        report.add("polling_writes_per_s", polled.writes_per_s, "/s", what)
    return limits


def _tailing(program: Path, arguments: argparse.Namespace, writes: int, seconds: int) -> int:
    """Find the largest number of queries with which nothing is lost or late."""

    def meets_goal(queries: int) -> bool:
        grid = arguments.partitions[0]
        load = measure(
            program, Run(arguments.kind[0], queries, writes, seconds, grid, 0, tailing=True)
        ).load
        keeps_up = load["writes_per_s"] >= _KEPT * writes and load["expected"] == load["delivered"]
        return keeps_up and load["p99_ms"] <= P99_MS

    def holds(queries: int) -> bool:
        # Other load on the machine may have disturbed the first attempt.
        return meets_goal(queries) or meets_goal(queries)

    good, bad = 0, _FIRST_TAILED
    while bad <= _MOST_TAILED and holds(bad):
        good, bad = bad, 2 * bad
    while good and bad > _CLOSE * good:
        middle = (good + bad) // 2
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good


def _plot(measured: dict[Run, GridResults], limits: dict[str, float]) -> Plot:
    lines = []
    for (kind, writes), several in _groups(
        measured, lambda run: (run.kind, run.writes), lambda run: run.queries
    ):
        for label, name in (("p99", "p99_ms"), ("median", "p50_ms")):
            points = [(float(run.queries), measured[run].load[name]) for run in several]
            lines.append(Line(f"{kind}, {writes:,} writes/s, {label}", points))
    marks = [Mark(f"{name}: up to here", limit) for name, limit in limits.items() if limit]
    return Plot("From a write to its notification", "live queries", "latency in ms", lines, marks)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[beside.OPTIONS],
    )
    parser.add_argument("--queries", type=_numbers, default=[1_500, 29_000], help="how many, each")
    parser.add_argument(
        "--writes", "--rate", type=_numbers, default=[1_000], help="writes a second"
    )
    parser.add_argument("--seconds", type=int, default=60, help="duration of the writes")
    parser.add_argument(
        "--kind", "--kinds", type=_some(KINDS), default=["range"], help="of queries"
    )
    parser.add_argument("--sorted", type=int, default=0, help="of a hundred have a window")
    parser.add_argument(
        "--partitions", type=_grids, default=[GridEpoch(1, 1, 2)], help="query x write partitions"
    )
    parser.add_argument(
        "--peers", type=_some(PEERS), default=[], help="alternatives to compare with"
    )
    parser.add_argument(
        "--decode", action="store_true", help="commits by SQL in another PostgreSQL instead"
    )
    parser.add_argument(
        "--copy",
        choices=("together", "apart"),
        help="measure the relay during a source's copy instead: in one process, or in two",
    )
    parser.add_argument("--plot", type=Path, help="where a plot goes, as SVG")
    parser.add_argument("--quick", action="store_true", help="ten seconds each")
    parser.add_argument(
        "--unoptimised", action="store_true", help="build the load without optimisation"
    )
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds = min(arguments.seconds, 10)
    return arguments


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _some(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        items = text.split(",")
        if unknown := set(items) - set(known):
            raise argparse.ArgumentTypeError(f"not known: {', '.join(unknown)}")
        return items

    return read


def _grids(text: str) -> list[GridEpoch]:
    """Read `1x2,1x4`, or `2` for one query partition."""
    grids = []
    for part in text.split(","):
        query, _, write = part.rpartition("x")
        grids.append(GridEpoch(1, 1, int(write), int(query or 1)))
    return grids


if __name__ == "__main__":
    main()
