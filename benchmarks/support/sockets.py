"""Clients of live queries with little overhead, in a separate process.

Each subscriber has a live query over one shard of a collection. Writes are sent over a WebSocket
too, each to one shard, at a steady rate whether or not the server keeps up. A write contains the
time of its start, so a subscriber can compute the latency from the event alone.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import psutil
from websockets.asyncio.client import ClientConnection

from benchmarks.support.client import (
    REALTIME,
    SUBSCRIPTIONS_A_CONNECTION,
    Protocol,
    insert,
    opened,
)
from benchmarks.support.sampling import Sampling, sampled

#: Subscriptions that wait for their result concurrently.
SUBSCRIBING = 64
READY_S = 120.0
#: The timeout for outstanding events after the last write.
DRAIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Crowd:
    """The number of subscribers and writers, and the write rate."""

    port: int
    key: str
    collection: str
    subscribers: int
    #: Subscribers with the same query; all of them are notified of each write.
    fan_out: int
    writes_per_s: float
    seconds: float
    #: Processes whose CPU time is measured, by name, including their children.
    services: Mapping[str, int] = field(default_factory=dict)
    #: The subscribers' protocol; writes use `/v1/realtime`.
    protocol: Protocol = REALTIME
    #: A process whose stacks are sampled from the first write to the response to the last.
    sampling: Sampling | None = None

    @property
    def shards(self) -> int:
        return self.subscribers // self.fan_out


@dataclass(slots=True)
class SubscriberResults:
    """What the subscribers received in a run."""

    written: int = 0
    refused: int = 0
    expected: int = 0
    delivered: int = 0
    #: Status, reset and end frames: there should be none.
    disturbances: int = 0
    subscribing_s: float = 0.0
    #: From the first write to the response to the last.
    writing_s: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    answers_ms: list[float] = field(default_factory=list)
    #: CPU time of each service from the first write until the last event, in seconds.
    cpu_s: dict[str, float] = field(default_factory=dict)


def run(crowd: Crowd) -> SubscriberResults:
    """Subscribe, write and receive, in another process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (crowd,))


def _run(crowd: Crowd) -> SubscriberResults:
    return asyncio.run(_Run(crowd).go())


class _Run:
    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._result = SubscriberResults()
        self._waiting = crowd.subscribers
        self._all_ready = asyncio.Event()
        self._room = asyncio.Semaphore(SUBSCRIBING)

    async def go(self) -> SubscriberResults:
        crowd, result = self._crowd, self._result
        connections: list[ClientConnection] = []
        readers: list[asyncio.Task[None]] = []
        begun = time.perf_counter()
        try:
            for first in range(0, crowd.subscribers, SUBSCRIPTIONS_A_CONNECTION):
                connection = await crowd.protocol.connect(crowd.port, crowd.key)
                connections.append(connection)
                readers.append(asyncio.create_task(self._listen(connection)))
                last = min(first + SUBSCRIPTIONS_A_CONNECTION, crowd.subscribers)
                for number in range(first, last):
                    await self._subscribe(connection, number)
            await asyncio.wait_for(self._all_ready.wait(), READY_S)
            result.subscribing_s = time.perf_counter() - begun
            before = _cpu_s(crowd.services)
            async with sampled(crowd.sampling):
                await self._write_all()
            result.expected = (result.written - result.refused) * crowd.fan_out
            end = time.perf_counter() + DRAIN_S
            while result.delivered < result.expected and time.perf_counter() < end:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            after = _cpu_s(crowd.services)
            result.cpu_s = {name: after[name] - before[name] for name in after}
        finally:
            for reader in readers:
                reader.cancel()
            for connection in connections:
                await connection.close()
        return result

    async def _subscribe(self, connection: ClientConnection, number: int) -> None:
        crowd = self._crowd
        await self._room.acquire()
        condition = {"shard": number // crowd.fan_out}
        await connection.send(crowd.protocol.subscribe(f"s{number}", crowd.collection, condition))

    async def _listen(self, connection: ClientConnection) -> None:
        result, read = self._result, self._crowd.protocol.read
        async for text in connection:
            now = time.time_ns()
            kind, sent = read(text)
            if kind == "event":
                result.delivered += 1
                result.latencies_ms.append((now - sent * 1000) / 1e6)
            elif kind == "ready":
                self._room.release()
                self._waiting -= 1
                if not self._waiting:
                    self._all_ready.set()
            elif kind in ("status", "reset", "end", "error"):
                result.disturbances += 1

    async def _write_all(self) -> None:
        crowd, result = self._crowd, self._result
        connection = await opened(crowd.port, crowd.key)
        sent: dict[str, float] = {}
        answered = asyncio.create_task(self._answers(connection, sent))
        rng = random.Random(11)
        begun = time.perf_counter()
        total = int(crowd.writes_per_s * crowd.seconds)
        for number in range(total):
            due = begun + number / crowd.writes_per_s
            pause = due - time.perf_counter()
            if pause > 0:
                await asyncio.sleep(pause)
            name = f"w{number}"
            sent[name] = time.perf_counter()
            document = {
                "shard": rng.randrange(crowd.shards),
                "sent": time.time_ns() // 1000,
                "text": f"write number {number}",
            }
            await connection.send(insert(name, crowd.collection, document))
            result.written += 1
        end = time.perf_counter() + DRAIN_S
        while sent and time.perf_counter() < end:  # noqa: ASYNC110 -- a look now and then is cheap
            await asyncio.sleep(0.01)
        result.writing_s = time.perf_counter() - begun
        answered.cancel()
        await connection.close()

    async def _answers(self, connection: ClientConnection, sent: dict[str, float]) -> None:
        result = self._result
        async for text in connection:
            frame = json.loads(text)
            if frame["type"] in ("ack", "error"):
                result.answers_ms.append((time.perf_counter() - sent.pop(frame["id"])) * 1000)
                result.refused += frame["type"] == "error"


def _cpu_s(services: Mapping[str, int]) -> dict[str, float]:
    used = {}
    for name, pid in services.items():
        process = psutil.Process(pid)
        times = [member.cpu_times() for member in (process, *process.children(recursive=True))]
        used[name] = float(sum(part.user + part.system for part in times))
    return used
