"""A separate grid for a benchmark: a Valkey, ticks like those of the relay, nodes as processes.

The native load generator registers queries, reports that, and measures on command. The CPU time of
all processes is read before and afterwards.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil

from documents.outbox.entries import TransactionSnapshot, encode_tick_body
from documents.outbox.events import EventLayer
from foundation.valkey_wire import ValkeyWire
from realtime.grid.layout import GridEpoch as GridEpoch  # noqa: PLC0414 -- benchmarks take it from here
from realtime.grid.layout import NodeSpec
from rillbase_server.launcher.embedded import EmbeddedValkey

_ROOT = Path(__file__).resolve().parents[2]
_INCARNATION = b"a benchmark's..."
_START_TIMEOUT_S = 60.0
_TICK_S = 0.25
#: Nodes update their figures every two seconds.
_REPORT_TIMEOUT_S = 6.0


@dataclass(frozen=True, slots=True)
class Run:
    """The parameters of one measurement."""

    kind: str
    queries: int
    writes: int
    seconds: int
    grid: GridEpoch
    sorted_percent: int = 0
    #: Whether the streams are tailed without a grid, evaluating each query for each write.
    tailing: bool = False
    #: Instead of a kind's queries: queries that group documents, with so many groups in total.
    groups: int = 0
    documents: int = 0

    def arguments(self, url: str) -> list[str]:
        """Return the load generator's input."""
        options: dict[str, object] = {
            "--url": url,
            "--prefix": self.grid.prefix,
            "--queries": self.queries,
            "--writes": self.writes,
            "--seconds": self.seconds,
            "--query-partitions": self.grid.query_partitions,
            "--write-partitions": self.grid.write_partitions,
            "--kind": self.kind,
            "--sorted": self.sorted_percent,
            "--tailing": int(self.tailing),
            "--groups": self.groups,
            "--documents": self.documents,
        }
        return [str(part) for pair in options.items() for part in pair]


@dataclass(frozen=True, slots=True)
class GridResults:
    """The results of a run."""

    #: The load generator's results.
    load: dict[str, float]
    #: CPU time during the writes, in seconds: of each filter node, and of the others by name.
    filter_cpu_s: list[float] = field(default_factory=list)
    cpu_s: dict[str, float] = field(default_factory=dict)
    #: The index of the fullest filter node, in bytes per query.
    index_bytes: float = 0.0
    #: The growth of the nodes' memory during the registrations, by name.
    grown_bytes: dict[str, int] = field(default_factory=dict)

    def node_us_per_write(self) -> float:
        """Return the CPU time of the busiest filter node per write."""
        return max(self.filter_cpu_s) * 1e6 / self.load["writes"]

    def filters_us_per_write(self) -> float:
        """Return the CPU time of all filter nodes per write."""
        return sum(self.filter_cpu_s) * 1e6 / self.load["writes"]


class GridNodes:
    """The processes of a grid's nodes."""

    def __init__(self, url: str) -> None:
        paths = [str(_ROOT), str(_ROOT / "platform"), os.environ.get("PYTHONPATH", "")]
        self._environment = os.environ | {
            "EVENTS_URL": url,
            "PYTHONPATH": os.pathsep.join(paths),
        }
        self._running: dict[NodeSpec, subprocess.Popen[bytes]] = {}

    def start(self, node: NodeSpec) -> None:
        self._running[node] = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.support.grid_node", node.to_json()],
            cwd=_ROOT,
            env=self._environment,
        )

    def kill(self, node: NodeSpec) -> None:
        process = self._running.pop(node)
        process.kill()
        process.wait()

    def close(self) -> None:
        for node in list(self._running):
            self.kill(node)

    def processes(self) -> dict[NodeSpec, psutil.Process]:
        return {node: psutil.Process(process.pid) for node, process in self._running.items()}


class LoadGenerator:
    """The native program, which has registered its queries once this has been created."""

    def __init__(self, program: Path, run: Run, url: str) -> None:
        self._process = subprocess.Popen(
            [str(program), *run.arguments(url)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._line() != "registered\n":
            raise RuntimeError("the load generator could not register its queries")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def measure(self, uncounted: Sequence[int] = ()) -> dict[str, float]:
        """Write for the run's duration; the results leave out these write partitions."""
        if self._process.stdin is None:
            raise RuntimeError("the load generator has ended")
        self._process.stdin.write(",".join(map(str, uncounted)) + "\n")
        self._process.stdin.flush()
        line = self._line()
        if not line:
            raise RuntimeError("the load generator failed")
        results: dict[str, float] = json.loads(line)
        return results

    def _line(self) -> str:
        return "" if self._process.stdout is None else self._process.stdout.readline()


@contextmanager
def running_grid(
    grid: GridEpoch, nodes: list[NodeSpec]
) -> Iterator[tuple[EmbeddedValkey, GridNodes]]:
    """Start a Valkey and these nodes; stop everything afterwards."""
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="rillbase-grid-"))
        Path(directory).chmod(0o755)
        valkey = stack.enter_context(EmbeddedValkey(Path(directory) / "valkey", password="bench"))
        asyncio.run(_install(valkey.url, f"{grid.epoch}:{grid.write_partitions}"))
        stack.enter_context(_ticking(valkey.url))
        processes = stack.enter_context(closing(GridNodes(valkey.url)))
        for node in nodes:
            processes.start(node)
        asyncio.run(_until_running(valkey.url, grid, nodes))
        yield valkey, processes


def measure(program: Path, run: Run) -> GridResults:
    """Start everything, wait for the results, stop everything."""
    nodes = [] if run.tailing else run.grid.nodes()
    with running_grid(run.grid, nodes) as (valkey, processes):
        return _load(program, run, valkey, processes.processes())


def _load(
    program: Path, run: Run, valkey: EmbeddedValkey, nodes: dict[NodeSpec, psutil.Process]
) -> GridResults:
    empty = _memory_bytes(nodes)
    with LoadGenerator(program, run, valkey.url) as load:
        watched = {
            "valkey": psutil.Process(valkey.pid),
            "load": psutil.Process(load.pid),
            **{node.name: process for node, process in nodes.items()},
        }
        full = _memory_bytes(nodes)
        before = _cpu_s(watched)
        results = load.measure()
        after = _cpu_s(watched)
    used = {name: after[name] - before[name] for name in after}
    filters = [used.pop(node.name) for node in nodes if node.write_partition is not None]
    index_bytes = asyncio.run(_index_bytes(valkey.url, run)) if nodes else 0.0
    grown = {name: full[name] - empty[name] for name in full}
    return GridResults(results, filters, used, index_bytes, grown)


def _memory_bytes(nodes: dict[NodeSpec, psutil.Process]) -> dict[str, int]:
    return {node.name: process.memory_info().rss for node, process in nodes.items()}


def _cpu_s(watched: dict[str, psutil.Process]) -> dict[str, float]:
    used = {}
    for name, process in watched.items():
        times = process.cpu_times()
        used[name] = times.user + times.system
    return used


def event_layer(url: str) -> ValkeyWire:
    """Return a connection to the event layer."""
    return ValkeyWire(url, connect_timeout_s=2, answer_timeout_s=10)


async def _install(url: str, epochs: str) -> None:
    wire = event_layer(url)
    # The event layer's server stores nothing on disk: after a restart it has a new incarnation, and
    # the outbox's entries are published again.
    await wire.call("CONFIG", "SET", "appendonly", "no", "maxmemory", "8gb")
    await EventLayer(wire, 1).install(1, epochs)
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
    wire = event_layer(url)
    events = EventLayer(wire, 1)
    body = encode_tick_body(1, _INCARNATION, TransactionSnapshot(1, 1, ()))
    while not over.is_set():
        status = await events.read_status()
        await events.tick(status.time_us, 1, status, _INCARNATION, body)
        await asyncio.sleep(_TICK_S)
    await wire.aclose()


async def _until_running(url: str, grid: GridEpoch, nodes: list[NodeSpec]) -> None:
    async with asyncio.timeout(_START_TIMEOUT_S):
        while True:
            reports = await node_reports(url, grid, nodes)
            if all(report.get("state") == "running" for report in reports):
                return
            await asyncio.sleep(0.05)


async def node_reports(url: str, grid: GridEpoch, nodes: list[NodeSpec]) -> list[dict[str, object]]:
    wire = event_layer(url)
    layer = grid.layer(wire)
    _, leases = await layer.leases([node.name for node in nodes])
    await wire.aclose()
    node_leases = (leases.get(node.name) for node in nodes)
    return [{} if node is None else json.loads(node.report or b"{}") for node in node_leases]


async def _index_bytes(url: str, run: Run) -> float:
    """Return the report of the fullest filter node on its index, once all nodes have all
    queries.
    """
    nodes = [node for node in run.grid.nodes() if node.write_partition is not None]
    end = time.monotonic() + _REPORT_TIMEOUT_S
    while True:
        reports = await node_reports(url, run.grid, nodes)
        known = sum(int(str(report["queries"])) for report in reports)
        if known >= run.queries * run.grid.write_partitions or time.monotonic() > end:
            sizes = [
                float(str(report["index_bytes"])) / max(1, int(str(report["queries"])))
                for report in reports
            ]
            return max(sizes)
        await asyncio.sleep(0.1)
