"""Very many idle, authenticated connections, and their cost for the app server.

Several processes open them. They are measured first without a subscription, then with one each, of
a shard without writes. Memory is the proportional share (PSS) of the app server and its children:
its growth, after `SETTLE_S` with only heartbeats.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

import psutil
from websockets.asyncio.client import ClientConnection

from benchmarks.support.client import Protocol
from benchmarks.support.open_files import raise_open_files
from benchmarks.support.report import Report

PROCESSES = 4
#: Open files of a process in addition to its connections.
OTHER_FILES = 1_024
#: Connections that a client process opens, or subscribes, concurrently.
AT_ONCE = 16
#: Twice the interval of heartbeats, so that each measurement has the same number.
SETTLE_S = 20.0
PHASE_S = 600.0
#: Connections after which the app server has loaded everything that it needs for them.
WARM_UP = 20
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Idle:
    """The connections to open."""

    port: int
    key: str
    collection: str
    connections: int
    protocol: Protocol


@dataclass(frozen=True, slots=True)
class _ProcessUsage:
    """The resource use of a process at one time."""

    pss_bytes: int
    cpu_s: float


def measure(report: Report, idle: Idle, web: psutil.Process) -> None:
    """Open the connections, subscribe, and measure each phase."""
    asyncio.run(_warm_up(idle))
    begin, _ = _settled(web)
    count = idle.connections
    with _clients(idle) as clients:
        opened_s = _phase(clients)
        connected, cores = _settled(web)
        subscribed_s = _phase(clients)
        subscribed, subscribed_cores = _settled(web)
        n_lost = count - sum(int(client.recv()) for client in _ask_all(clients))
    mib = (begin.pss_bytes / _MIB, connected.pss_bytes / _MIB, subscribed.pss_bytes / _MIB)
    report.add("idle_web_mib", mib[0], "MiB", "memory of the app server before it")
    report.add("idle_connected_mib", mib[1], "MiB", f"with {count:,} authenticated connections")
    report.add("idle_subscribed_mib", mib[2], "MiB", "with a subscription on each")
    size = (connected.pss_bytes - begin.pss_bytes) / count
    report.add("idle_connection_bytes", size, "B", "of it for a connection")
    size = (subscribed.pss_bytes - begin.pss_bytes) / count
    report.add("idle_subscribed_bytes", size, "B", "for a connection with a subscription")
    report.add("idle_open_s", opened_s, "s", f"to open {count:,} connections")
    report.add("idle_opened_per_s", count / opened_s, "/s", "opened and authenticated")
    cpu_ms = (connected.cpu_s - begin.cpu_s - cores * SETTLE_S) / count * 1000
    report.add("idle_open_cpu_ms", cpu_ms, "ms", "CPU of the app server to open one")
    report.add("idle_subscribe_s", subscribed_s, "s", "until each had a subscription")
    report.add("idle_cores", cores, "cores", "used by the app server while all are idle")
    report.add("idle_subscribed_cores", subscribed_cores, "cores", "the same with subscriptions")
    report.add("idle_lost", n_lost, "", "connections that the server has closed", "<= 0")


async def _warm_up(idle: Idle) -> None:
    clients = _Clients(idle, range(WARM_UP))
    await clients.connect_all()
    await clients.subscribe_all()
    await clients.close()


def room(connections: int) -> int:
    """Return the number of connections for an app server, and raise its limit of open files."""
    if not connections:
        return 0
    raise_open_files(connections + OTHER_FILES)
    return connections + OTHER_FILES // 2


def _settled(web: psutil.Process) -> tuple[_ProcessUsage, float]:
    """Return the memory and the CPU cores in use after a period without requests."""
    before = _used(web)
    time.sleep(SETTLE_S)
    after = _used(web)
    return after, (after.cpu_s - before.cpu_s) / SETTLE_S


def _used(web: psutil.Process) -> _ProcessUsage:
    family = [web, *web.children(recursive=True)]
    times = [process.cpu_times() for process in family]
    return _ProcessUsage(
        sum(process.memory_full_info().pss for process in family),
        sum(time.user + time.system for time in times),
    )


@contextmanager
def _clients(idle: Idle) -> Iterator[list[Connection]]:
    """Start the processes, which start each phase on command."""
    context = multiprocessing.get_context("spawn")
    started, clients = [], []
    for number in range(PROCESSES):
        ours, theirs = context.Pipe()
        part = range(number, idle.connections, PROCESSES)
        process = context.Process(target=_run, args=(idle, part, theirs), daemon=True)
        process.start()
        started.append(process)
        clients.append(ours)
    try:
        # Each process reports that it has started, which takes a second.
        _await(clients)
        yield clients
    finally:
        for process in started:
            process.kill()


def _phase(clients: Sequence[Connection]) -> float:
    begun_s = time.perf_counter()
    _await(_ask_all(clients))
    return time.perf_counter() - begun_s


def _ask_all(clients: Sequence[Connection]) -> Sequence[Connection]:
    for client in clients:
        client.send(True)
    return clients


def _await(clients: Sequence[Connection]) -> None:
    for client in clients:
        if not client.poll(PHASE_S):
            raise RuntimeError("clients could not open their connections in time")
        client.recv()


def _run(idle: Idle, numbers: range, driver: Connection) -> None:
    raise_open_files(len(numbers) + OTHER_FILES)
    asyncio.run(_Clients(idle, numbers).live(driver))


class _Clients:
    """The connections of one process."""

    def __init__(self, idle: Idle, numbers: range) -> None:
        self._idle = idle
        self._numbers = numbers
        self._open: dict[int, ClientConnection] = {}
        self._ready = {number: asyncio.Event() for number in numbers}
        self._readers: list[asyncio.Task[None]] = []
        self._room = asyncio.Semaphore(AT_ONCE)

    async def live(self, driver: Connection) -> None:
        """Run the phases on command: open, subscribe, count."""
        driver.send(True)
        for phase in (self.connect_all, self.subscribe_all):
            await asyncio.to_thread(driver.recv)
            await phase()
            driver.send(True)
        await asyncio.to_thread(driver.recv)
        driver.send(sum(not reader.done() for reader in self._readers))
        await asyncio.Event().wait()

    async def connect_all(self) -> None:
        await asyncio.gather(*map(self._connect, self._numbers))

    async def subscribe_all(self) -> None:
        await asyncio.gather(*map(self._subscribe, self._numbers))

    async def close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self._open.values()))

    async def _connect(self, number: int) -> None:
        async with self._room:
            connection = await self._idle.protocol.connect(self._idle.port, self._idle.key)
        self._open[number] = connection
        self._readers.append(asyncio.create_task(self._read(number, connection)))

    async def _subscribe(self, number: int) -> None:
        condition = {"shard": number}
        async with self._room:
            message = self._idle.protocol.subscribe("idle", self._idle.collection, condition)
            await self._open[number].send(message)
            await self._ready[number].wait()

    async def _read(self, number: int, connection: ClientConnection) -> None:
        """Read all messages, so that the server never waits for a client."""
        async for text in connection:
            kind, _ = self._idle.protocol.read(text)
            if kind == "ready":
                self._ready[number].set()
            elif kind in ("error", "end"):
                raise RuntimeError(f"a subscription ended: {text!r}")
