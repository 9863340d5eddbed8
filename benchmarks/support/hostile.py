"""A hostile client, in a separate process, until it is stopped.

`residual`   as many residual queries as it may have, and writes that match them all
`silent`     queries that match all of its writes, on a connection that it never reads
`many`       ten thousand subscriptions as fast as they can be sent, repeatedly
`introspection`  GraphQL operations that take long to check or to answer (graphql_attack.py)
`pages`      GraphQL operations of ten pages each
`reads`      reads that no index helps, of 40 concurrent callers (read_attack.py)
`headers`    requests with endless headers (header_attack.py), without credentials
`sockets`    WebSocket bombs and readers that do not read (socket_attack.py), without credentials
`uploads`    small uploads that become huge (upload_attack.py)

The last three work for a bounded share of the time only (duty.py). All run at the lowest priority:
they represent clients on other machines, which would not compete with the neighbours' clients for
this machine's cores.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event

import psutil
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from benchmarks.support import (
    graphql_attack,
    header_attack,
    read_attack,
    socket_attack,
    upload_attack,
)
from benchmarks.support.client import insert, opened, subscribe
from benchmarks.support.duty import Duty
from benchmarks.support.open_files import raise_open_files

#: Those that repeat calls over HTTP, and whose responses are counted.
CALLS = ("introspection", "pages", "reads")
TENANTS = ("residual", "silent", "many", *CALLS)
ATTACKS = ("headers", "sockets", "uploads")
KINDS = (*TENANTS, *ATTACKS)
LOWEST_PRIORITY = 19
#: Share of one core, for an attacker that shares it with its target.
ATTACKER_SHARE = 0.2
WRITES_PER_S = 50.0
_QUERIES = {"residual": 1_000, "silent": 100, "many": 10_000}
_TEXT = "x" * 2_000
_RETRY_S = 0.5
_SETTLE_S = 3.0
#: The timeout for closing its connections.
_LAST_S = 3.0


@dataclass(frozen=True, slots=True)
class Hostile:
    """The attacker, and the attack."""

    kind: str
    port: int
    key: str
    collection: str


@dataclass(slots=True)
class AttackerUsage:
    """What the attacker used and did during the block, complete at its end."""

    cpu_s: float = 0.0
    wall_s: float = 0.0
    #: The responses to its calls over HTTP, by status; 0: none. Other kinds do not count.
    responses: Counter[int] = field(default_factory=Counter)


@contextmanager
def behaving(hostile: Hostile) -> Iterator[AttackerUsage]:
    """Run the attack; the block starts after a settling time."""
    context = multiprocessing.get_context("spawn")
    settled, over = context.Event(), context.Event()
    receiver, sender = context.Pipe(duplex=False)
    arguments = (hostile, settled, over, sender)
    process = context.Process(target=_run, args=arguments, daemon=True)
    process.start()
    used = AttackerUsage()
    try:
        settled.wait(60)
        begun_s, before_s = time.monotonic(), _cpu_s(process.pid)
        yield used
        used.cpu_s, used.wall_s = _cpu_s(process.pid) - before_s, time.monotonic() - begun_s
    finally:
        over.set()
        if receiver.poll(_LAST_S):
            used.responses = receiver.recv()
        process.join(_LAST_S)
        process.kill()


def _cpu_s(pid: int | None) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _run(hostile: Hostile, settled: Event, over: Event, results: Connection) -> None:
    raise_open_files()
    os.nice(LOWEST_PRIORITY)
    responses = Counter[int]()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_behave(hostile, settled, over, responses))
    results.send(responses)


def _begin(hostile: Hostile, responses: Counter[int]) -> list[asyncio.Task[None]]:
    match hostile.kind:
        case "headers":
            attack = header_attack.run(hostile.port, Duty(ATTACKER_SHARE))
        case "sockets":
            socket_attack.bomb()
            attack = socket_attack.run(hostile.port, Duty(ATTACKER_SHARE))
        case "uploads":
            bombs = upload_attack.bombs(hostile.collection)
            attack = upload_attack.run(hostile.port, hostile.key, bombs, Duty(ATTACKER_SHARE))
        case "introspection":
            attack = graphql_attack.run(hostile.port, hostile.key, responses)
        case "pages":
            attack = graphql_attack.read(hostile.port, hostile.key, hostile.collection, responses)
        case "reads":
            attack = read_attack.run(hostile.port, hostile.key, hostile.collection, responses)
        case "many":
            attack = _again(_subscribe, hostile)
        case _:
            writes = asyncio.create_task(_again(_write, hostile))
            return [writes, asyncio.create_task(_again(_subscribe, hostile))]
    return [asyncio.create_task(attack)]


async def _behave(hostile: Hostile, settled: Event, over: Event, responses: Counter[int]) -> None:
    tasks = _begin(hostile, responses)
    await asyncio.sleep(_SETTLE_S)
    settled.set()
    await asyncio.to_thread(over.wait)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _again(what: Callable[[Hostile], Awaitable[None]], hostile: Hostile) -> None:
    """Start again whenever the server closes the connection."""
    while True:
        with contextlib.suppress(OSError, WebSocketException, ConnectionClosed):
            await what(hostile)
        await asyncio.sleep(_RETRY_S)


async def _open(hostile: Hostile) -> ClientConnection:
    return await opened(hostile.port, hostile.key, queue=1, close_timeout_s=0.1)


async def _subscribe(hostile: Hostile) -> None:
    connection = await _open(hostile)
    for number in range(_QUERIES[hostile.kind]):
        condition = _filter(hostile.kind, number)
        await connection.send(subscribe(f"s{number}", hostile.collection, condition))
    if hostile.kind == "silent":
        await asyncio.Event().wait()
    if hostile.kind == "many":
        # Responses are ignored.
        await asyncio.sleep(_RETRY_S)
        await connection.close()
        return
    async for _ in connection:
        pass


def _filter(kind: str, number: int) -> dict[str, object]:
    match kind:
        case "residual":
            # No document matches, and no index can show that.
            return {"$nor": [{"n": {"$gte": -number}}]}
        case "silent":
            return {"n": {"$gte": -number}}
        case _:
            return {"n": -1 - number}


async def _write(hostile: Hostile) -> None:
    connection = await _open(hostile)
    reading = asyncio.create_task(_drain(connection))
    try:
        for number in range(1_000_000_000):
            document = {"n": number, "text": _TEXT}
            await connection.send(insert(f"w{number}", hostile.collection, document))
            await asyncio.sleep(1 / WRITES_PER_S)
    finally:
        reading.cancel()


async def _drain(connection: ClientConnection) -> None:
    async for _ in connection:
        pass
