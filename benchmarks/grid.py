"""Event layer → grid → notification, with the paper's workload.

    python -m benchmarks.grid [--queries 1500,29000] [--writes 1000] [--seconds 60]
        [--kind range] [--partitions 2] [--quick]

Documents have five strings of ten characters and five integers, one of them unique and random;
queries are `random >= i AND random < j`, so narrow that about 17 a second match, however many there
are. `--kind equality` and `residual` ask for one value, and for what no index finds.

A Valkey of the run's own, the filter nodes and the sort node as processes, and a native program
that registers the queries in bulk and then writes and listens. There is no PostgreSQL: nodes begin
with no documents. Latency is from before a write is appended until the notification was read.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.support.native import built
from benchmarks.support.report import Report
from documents.outbox.entries import Snapshot, encode_tick_body
from documents.outbox.events import EventLayer, prefix
from foundation.valkey_wire import ValkeyWire
from realtime.events.layer import GridLayer
from realtime.grid.layout import Grid
from rillbase_server.launcher.embedded import EmbeddedValkey

_ROOT = Path(__file__).resolve().parents[1]
_INCARNATION = b"a benchmark's..."
_START_TIMEOUT_S = 60.0
_TICK_S = 0.25
_P99_GOAL = "<= 20"


def main() -> None:
    """Measure each number of queries by itself."""
    arguments = _arguments()
    report = Report("grid", vars(arguments) | {"queries": list(arguments.queries)})
    load = built("rillbase-nodes", example="grid_load", optimised=not arguments.unoptimised)
    for queries in arguments.queries:
        print(f"{queries:,} queries …", file=sys.stderr)
        _add(report, queries, _measure(load, arguments, queries))
    report.finish()


def _add(report: Report, queries: int, found: dict[str, float]) -> None:
    name = f"{queries}_queries"
    report.add(f"{name}_p50_ms", found["p50_ms"], "ms", "half of the notifications come sooner")
    report.add(f"{name}_p99_ms", found["p99_ms"], "ms", "99 of 100 come sooner", _P99_GOAL)
    report.add(f"{name}_max_ms", found["max_ms"], "ms", "the slowest notification")
    report.add(f"{name}_average_ms", found["average_ms"], "ms", "on average")
    report.add(f"{name}_writes_per_s", found["writes_per_s"], "/s", "appended")
    report.add(f"{name}_notifications", found["delivered"], "", "delivered")
    lost = found["expected"] - found["delivered"]
    report.add(f"{name}_lost", lost, "", "expected and not delivered", "<= 0")
    report.add(f"{name}_nodes_cpu", found["nodes_cpu"], "cores", "that the filter nodes used")
    report.add(f"{name}_index_bytes", found["index_bytes"], "B", "of index for a query, a node")
    rate = found["registered_per_s"]
    report.add(f"{name}_registered_per_s", rate, "/s", "queries registered", ">= 20000")


def _measure(load: Path, arguments: argparse.Namespace, queries: int) -> dict[str, float]:
    grid = Grid(1, 1, arguments.partitions)
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="rillbase-grid-"))
        Path(directory).chmod(0o755)
        valkey = stack.enter_context(EmbeddedValkey(Path(directory) / "valkey", password="bench"))
        asyncio.run(_install(valkey.url, arguments.partitions))
        stack.enter_context(_ticking(valkey.url))
        stack.enter_context(_nodes(valkey.url, grid))
        asyncio.run(_until_watching(valkey.url, grid))
        options: dict[str, object] = {
            "--url": valkey.url,
            "--prefix": prefix(1),
            "--queries": queries,
            "--writes": arguments.writes,
            "--seconds": arguments.seconds,
            "--partitions": arguments.partitions,
            "--kind": arguments.kind,
        }
        began = time.monotonic()
        before = asyncio.run(_reports(valkey.url, grid))
        answer = subprocess.run(
            [load, *(str(part) for pair in options.items() for part in pair)],
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        found: dict[str, float] = json.loads(answer.stdout)
        passed_s = time.monotonic() - began
        after = asyncio.run(_reports(valkey.url, grid))
        cpu_us = sum(node["cpu_us"] for node in after) - sum(node["cpu_us"] for node in before)
        found["nodes_cpu"] = cpu_us / 1e6 / passed_s
        found["index_bytes"] = max(node["index_bytes"] for node in after) / queries
        return found


def _wire(url: str) -> ValkeyWire:
    return ValkeyWire(url, connect_timeout_s=2, answer_timeout_s=10)


async def _install(url: str, partitions: int) -> None:
    wire = _wire(url)
    await EventLayer(wire, 1).install(1, f"1:{partitions}")
    await wire.aclose()


@contextmanager
def _ticking(url: str) -> Iterator[None]:
    """Prove the streams complete, as the relay does."""
    over = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_tick(url, over)))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


async def _tick(url: str, over: threading.Event) -> None:
    wire = _wire(url)
    events = EventLayer(wire, 1)
    body = encode_tick_body(1, _INCARNATION, Snapshot(1, 1, ()))
    while not over.is_set():
        look = await events.look()
        await events.tick(look.time_us, 1, look, _INCARNATION, body)
        await asyncio.sleep(_TICK_S)
    await wire.aclose()


@contextmanager
def _nodes(url: str, grid: Grid) -> Iterator[None]:
    environment = os.environ | {
        "EVENTS_URL": url,
        "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "platform")]),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.support.grid_node", node.to_json()],
            cwd=_ROOT,
            env=environment,
        )
        for node in grid.nodes()
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


async def _until_watching(url: str, grid: Grid) -> None:
    async with asyncio.timeout(_START_TIMEOUT_S):
        while True:
            reports = await _all_reports(url, grid)
            if all(report.get("state") == "running" for report in reports):
                return
            await asyncio.sleep(0.05)


async def _all_reports(url: str, grid: Grid) -> list[dict[str, object]]:
    wire = _wire(url)
    _, found = await GridLayer(wire, 1, 1).look([node.name for node in grid.nodes()])
    await wire.aclose()
    held = (found.get(node.name) for node in grid.nodes())
    return [{} if node is None else json.loads(node.report or b"{}") for node in held]


async def _reports(url: str, grid: Grid) -> list[dict[str, float]]:
    """What the filter nodes say, once they have said it anew."""
    await asyncio.sleep(3)
    reports = (await _all_reports(url, grid))[: grid.write_partitions]
    return [
        {name: float(str(report[name])) for name in ("cpu_us", "index_bytes")} for report in reports
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=_numbers, default=[1_500, 29_000], help="how many, each")
    parser.add_argument("--writes", type=int, default=1_000, help="writes a second")
    parser.add_argument("--seconds", type=int, default=60, help="how long they go on")
    parser.add_argument("--kind", choices=("range", "equality", "residual"), default="range")
    parser.add_argument("--partitions", type=int, default=2, help="write partitions")
    parser.add_argument("--quick", action="store_true", help="ten seconds each")
    parser.add_argument("--unoptimised", action="store_true", help="build the load quickly")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds = min(arguments.seconds, 10)
    return arguments


def _numbers(text: str) -> Sequence[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
