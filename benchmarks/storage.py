"""The storage node: durable writes of several kinds over several connections, and their syncs.

    python -m benchmarks.storage [--connections 8] [--pipeline 1,16] [--seconds 5] [--beside DIR]

Each connection alternately publishes, adds an event to an aggregate and sets a value, with so many
commands in flight. A command is answered once it is durable. `--beside DIR` compares with another
checkout of the repository at an earlier commit, which has to be set up: rounds of both alternate
(benchmarks/support/beside.py).
"""

from __future__ import annotations

import argparse
import json

from benchmarks.support import beside
from benchmarks.support.durable_servers import running_node
from benchmarks.support.native import STORAGE_NODE, built
from benchmarks.support.own_server import ask
from benchmarks.support.report import Report
from benchmarks.support.storage_node import Loader

_DEFINITION = {
    "dimensions": ["endpoint"],
    "measures": {
        "calls": {"op": "count"},
        "latency": {"op": "sum", "field": "latency_ms", "type": "int"},
    },
}


def main() -> None:
    """Measure each pipeline length separately."""
    if beside.compared("storage"):
        return
    arguments = _arguments()
    report = Report("storage", beside.without_options(vars(arguments)))
    program = built(STORAGE_NODE)
    load = built(STORAGE_NODE, example="node_load")
    loader = Loader(load, arguments.seconds, arguments.connections)
    for pipeline in arguments.pipeline:
        with running_node(program) as port:
            ask(port, "RB.TOPIC.CREATE", "load")
            ask(port, "RB.AGG.DEFINE", "calls", json.dumps(_DEFINITION))
            syncs = _syncs(port)
            done = loader.load(port, "writes", pipeline, "bench")
            per_s = (_syncs(port) - syncs) / arguments.seconds
        name = f"pipeline_{pipeline}"
        report.add(f"{name}_writes_per_s", done["rate"], "/s", "writes answered")
        report.add(f"{name}_syncs_per_s", per_s, "/s", "syncs of the log")
        report.add(f"{name}_writes_per_sync", done["rate"] / per_s, "", "writes by a sync")
        report.add(f"{name}_p50_us", done["p50_us"], "µs", "until a pipeline was answered")
        report.add(f"{name}_p99_us", done["p99_us"], "µs", "until a pipeline was answered")
    report.finish()


def _syncs(port: int) -> int:
    """Return how often the node has synced its log."""
    info: dict[str, int] = ask(port, "INFO", user="admin")
    return info["engine_log_syncs_total"]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[beside.OPTIONS],
    )
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--pipeline", type=_numbers, default=[1, 16], help="commands under way")
    parser.add_argument("--seconds", type=int, default=5, help="of each run")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


if __name__ == "__main__":
    main()
