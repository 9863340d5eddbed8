"""Live groups: event layer → grid → row of a group.

    python -m benchmarks.groups [--queries 1 10000] [--groups 10000] [--documents 100000]
        [--writes 1000] [--seconds 60] [--quick]

The documents exist before the run, in groups of one query, or of several queries that share
documents and groups equally. Each row has a count, a sum and a minimum. Each write creates the next
version of a document and moves it to another group: two rows change, and both changes have to be
delivered.

A separate Valkey, filter nodes and a sort node as processes, and the native load generator of
`benchmarks.grid`. Latency is measured from the time at which a write was due until the change of a
row was read from the notification log. Memory is the growth of the sort node during the
registrations, including temporary memory.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.support.grid_run import GridResults, Run, measure
from benchmarks.support.native import built
from benchmarks.support.report import Report
from realtime.grid.layout import GridEpoch

P99_MS = 30.0
#: A rate counts as reached if this share of it was.
_KEPT = 0.99


def main() -> None:
    """Measure each number of queries separately."""
    arguments = _arguments()
    report = Report("groups", vars(arguments))
    program = built("rillbase-grid-nodes", example="grid_load", optimised=not arguments.unoptimised)
    for queries in arguments.queries:
        run = Run(
            "range",
            queries,
            arguments.writes,
            arguments.seconds,
            GridEpoch(1, 1, 2),
            groups=arguments.groups,
            documents=arguments.documents,
        )
        print(f"{queries} queries …", file=sys.stderr)
        _add(report, run, measure(program, run))
    report.finish()


def _add(report: Report, run: Run, measured: GridResults) -> None:
    name, load = f"{run.queries}_queries", measured.load
    report.add(f"{name}_p50_ms", load["p50_ms"], "ms", "median latency")
    report.add(f"{name}_p95_ms", load["p95_ms"], "ms", "95th percentile")
    goal = f"<= {P99_MS:g}"
    report.add(f"{name}_p99_ms", load["p99_ms"], "ms", "99th percentile", goal)
    report.add(f"{name}_max_ms", load["max_ms"], "ms", "the slowest change")
    least = f">= {_KEPT * run.writes:g}"
    report.add(f"{name}_writes_per_s", load["writes_per_s"], "/s", "appended", least)
    difference = abs(load["expected"] - load["delivered"])
    report.add(f"{name}_changes", load["delivered"], "", "of rows, told")
    report.add(f"{name}_lost", difference, "", "expected and not delivered, or the reverse", "<= 0")
    (sort,) = (node.name for node in run.grid.nodes() if node.write_partition is None)
    written_s = load["writes"] / load["writes_per_s"]
    filters = sum(measured.filter_cpu_s) / written_s
    report.add(f"{name}_filters_cores", filters, "cores", "used by the filter nodes")
    report.add(
        f"{name}_sort_cores", measured.cpu_s[sort] / written_s, "cores", "used by the sort node"
    )
    size = measured.grown_bytes[sort] / run.documents
    report.add(f"{name}_document_bytes", size, "B", "of memory for a document, its group's share")
    size = measured.grown_bytes[sort] / run.groups
    report.add(f"{name}_group_bytes", size, "B", "of memory per group, including its documents")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--queries", type=int, nargs="+", default=[1, 10_000], help="how many, each"
    )
    parser.add_argument("--groups", type=int, default=10_000, help="of all queries together")
    parser.add_argument("--documents", type=int, default=100_000, help="in groups")
    parser.add_argument("--writes", type=int, default=1_000, help="writes a second")
    parser.add_argument("--seconds", type=int, default=60, help="duration of the writes")
    parser.add_argument("--quick", action="store_true", help="ten seconds each")
    parser.add_argument(
        "--unoptimised", action="store_true", help="build the load without optimisation"
    )
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds = min(arguments.seconds, 10)
    return arguments


if __name__ == "__main__":
    main()
