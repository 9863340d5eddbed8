"""Hostile clients of a storage node, in a separate process.

- ten thousand connections that authenticate and then send nothing;
- two hundred that send half a request;
- one that announces requests of a terabyte, is disconnected, and reconnects;
- one that guesses tokens;
- twenty that subscribe to 2 MB of publications a second each, and never read them.

Repeated attacks are paced: the measurement is their effect on others, not how the cores are shared
with a busy program.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import TypeAlias

IDLE, HALF, DEAF = 10_000, 200, 20
_PACE_S = 0.02
_RESUME_S, _DEAF_S = 0.2, 30.0
_AT_ONCE = 100
_SETTLE_S = 180.0
_TEXT = "x" * 20_000
_END = (OSError, EOFError)


@dataclass(frozen=True, slots=True)
class Enemy:
    """The node's address, and the clients' credentials for their own namespace."""

    port: int
    user: str
    token: str
    topic: str


_Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextmanager
def harming(enemy: Enemy) -> Iterator[None]:
    """Start the attack; the block starts when all are connected."""
    context = multiprocessing.get_context("spawn")
    settled, over = context.Event(), context.Event()
    process = context.Process(target=_run, args=(enemy, settled, over), daemon=True)
    process.start()
    try:
        if not settled.wait(_SETTLE_S):
            message = "the hostile clients could not connect"
            raise TimeoutError(message)
        yield
    finally:
        over.set()
        process.join(30)
        process.kill()


def _run(enemy: Enemy, settled: Event, over: Event) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_harm(enemy, settled, over))


async def _harm(enemy: Enemy, settled: Event, over: Event) -> None:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def opened(more: bytes) -> _Streams:
        async with gate:
            return await _enter(enemy, more)

    half = b"*2\r\n$4\r\nECHO\r\n$1000000\r\nand then"
    idle = [opened(b"") for _ in range(IDLE)] + [opened(half) for _ in range(HALF)]
    streams = await asyncio.gather(*idle)
    again = [_again(_announce, enemy), _again(_guess, enemy), _publish(enemy)]
    deaf = [_again(_follow, enemy) for _ in range(DEAF)]
    tasks = [asyncio.create_task(work) for work in (*again, *deaf)]
    settled.set()
    await asyncio.to_thread(over.wait)
    for task in tasks:
        task.cancel()
    for _, writer in streams:
        writer.close()


def _request(*words: str) -> bytes:
    parts = [f"${len(word)}\r\n{word}\r\n" for word in words]
    return f"*{len(words)}\r\n{''.join(parts)}".encode()


async def _connect(enemy: Enemy) -> _Streams:
    return await asyncio.open_connection("127.0.0.1", enemy.port, limit=1 << 16)


async def _enter(enemy: Enemy, more: bytes) -> _Streams:
    """Connect, authenticate, and send something."""
    reader, writer = await _connect(enemy)
    writer.write(_request("AUTH", enemy.user, enemy.token))
    await reader.readline()
    writer.write(more)
    return reader, writer


async def _again(harm: Callable[[Enemy], Awaitable[None]], enemy: Enemy) -> None:
    while True:
        with contextlib.suppress(*_END):
            await harm(enemy)
        await asyncio.sleep(_PACE_S)


async def _announce(enemy: Enemy) -> None:
    reader, writer = await _enter(enemy, b"*1\r\n$999999999999\r\n")
    await reader.read()
    writer.close()


async def _guess(enemy: Enemy) -> None:
    reader, writer = await _connect(enemy)
    writer.write(_request("AUTH", enemy.user, "a-token-that-is-wrong"))
    await reader.readline()
    writer.close()


async def _publish(enemy: Enemy) -> None:
    reader, writer = await _enter(enemy, b"")
    data = f'{{"text":"{_TEXT}"}}'
    while True:
        writer.write(_request("RB.PUB", enemy.topic, "ID", "1", "UNTIL", "+1s", "DATA", data))
        # Two names with numbers, as in protocol version 2: seven lines.
        for _ in range(7):
            await reader.readline()
        await asyncio.sleep(_PACE_S / 2)


async def _follow(enemy: Enemy) -> None:
    """Subscribe, until the node disconnects."""
    hello = _request("HELLO", "3", "AUTH", enemy.user, enemy.token)
    reader, writer = await _connect(enemy)
    writer.write(hello + _request("RB.SUB", enemy.topic, "ID", "1", "FOLLOW"))
    # The stream buffers so much that it is never read further, and the socket fills.
    await asyncio.sleep(_RESUME_S)
    await reader.read(1)
    await asyncio.sleep(_DEAF_S)
    writer.close()
