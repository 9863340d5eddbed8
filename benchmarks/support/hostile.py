"""A tenant that is hard on its neighbours, in a process of its own, for as long as that is wanted.

`residual`   as many queries as it may have that no index finds, and writes that meet them all
`silent`     queries that match all of its writes, on a connection from which it never reads
`many`       ten thousand subscriptions as fast as they can be sent, again and again
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from benchmarks.support.client import insert, opened, subscribe

KINDS = ("residual", "silent", "many")
WRITES_PER_S = 50.0
_QUERIES = {"residual": 1_000, "silent": 100, "many": 10_000}
_TEXT = "x" * 2_000
_RETRY_S = 0.5
_SETTLE_S = 3.0


@dataclass(frozen=True, slots=True)
class Hostile:
    """Who it is, and what it does."""

    kind: str
    port: int
    key: str
    collection: str


@contextmanager
def behaving(hostile: Hostile) -> Iterator[None]:
    """Let it do what it does; the block begins when it has had time to settle."""
    context = multiprocessing.get_context("spawn")
    settled, over = context.Event(), context.Event()
    process = context.Process(target=_run, args=(hostile, settled, over), daemon=True)
    process.start()
    try:
        settled.wait(30)
        yield
    finally:
        over.set()
        process.join(10)
        process.kill()


def _run(hostile: Hostile, settled: Event, over: Event) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_behave(hostile, settled, over))


async def _behave(hostile: Hostile, settled: Event, over: Event) -> None:
    tasks = [asyncio.create_task(_again(_subscribe, hostile))]
    if hostile.kind != "many":
        tasks.append(asyncio.create_task(_again(_write, hostile)))
    await asyncio.sleep(_SETTLE_S)
    settled.set()
    await asyncio.to_thread(over.wait)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _again(what: Callable[[Hostile], Awaitable[None]], hostile: Hostile) -> None:
    """Begin anew whenever the server has had enough."""
    while True:
        with contextlib.suppress(OSError, WebSocketException, ConnectionClosed):
            await what(hostile)
        await asyncio.sleep(_RETRY_S)


async def _open(hostile: Hostile) -> ClientConnection:
    return await opened(hostile.port, hostile.key, queue=1, close_timeout_s=0.1)


async def _subscribe(hostile: Hostile) -> None:
    connection = await _open(hostile)
    for number in range(_QUERIES[hostile.kind]):
        wanted = _filter(hostile.kind, number)
        await connection.send(subscribe(f"s{number}", hostile.collection, wanted))
    if hostile.kind == "silent":
        await asyncio.Event().wait()
    if hostile.kind == "many":
        # What it is answered is nothing to it.
        await asyncio.sleep(_RETRY_S)
        await connection.close()
        return
    async for _ in connection:
        pass


def _filter(kind: str, number: int) -> dict[str, object]:
    match kind:
        case "residual":
            # No document matches, and no index can tell.
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
