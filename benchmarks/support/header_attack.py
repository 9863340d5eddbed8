"""Requests with endless headers: too long, too many, too slow, or incomplete."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from benchmarks.support.duty import Duty
from benchmarks.support.raw_sockets import connected

#: Connections at once: 4 + 4 + 200 + 1,500.
ENDLESS, MANY, SLOW, HALF_OPEN = 4, 4, 200, 1_500
#: Limits of one request, in case the server accepts all of it.
ENDLESS_BYTES, MANY_HEADERS = 64 << 20, 200_000
RETRY_S, SLOW_PAUSE_S = 0.5, 1.0
_BEGIN = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
_PART = b"x" * 65_536
_HEADERS = b"".join(b"X-Header-%d: some value\r\n" % number for number in range(2_000))

Attack = Callable[[int, Duty], Awaitable[None]]


async def run(port: int, duty: Duty) -> None:
    """Attack until cancelled."""
    kinds: tuple[tuple[Attack, int], ...] = (
        (_endless, ENDLESS),
        (_many, MANY),
        (_slow, SLOW),
        (_half_open, HALF_OPEN),
    )
    async with asyncio.TaskGroup() as attacks:
        for attack, connections in kinds:
            for _ in range(connections):
                attacks.create_task(_again(attack, port, duty))
                await duty.pause()


async def _again(attack: Attack, port: int, duty: Duty) -> None:
    while True:
        await attack(port, duty)
        await asyncio.sleep(RETRY_S)
        await duty.pause()


async def _endless(port: int, duty: Duty) -> None:
    async with connected(port) as socket:
        if socket is None or not await socket.send(_BEGIN + b"X-Long: "):
            return
        for _ in range(ENDLESS_BYTES // len(_PART)):
            await duty.pause()
            if not await socket.send(_PART):
                return


async def _many(port: int, duty: Duty) -> None:
    async with connected(port) as socket:
        if socket is None or not await socket.send(_BEGIN):
            return
        for _ in range(MANY_HEADERS // 2_000):
            await duty.pause()
            if not await socket.send(_HEADERS):
                return


async def _slow(port: int, duty: Duty) -> None:
    async with connected(port) as socket:
        if socket is None or not await socket.send(_BEGIN + b"X-Slow: "):
            return
        while await socket.send(b"x"):
            await asyncio.sleep(SLOW_PAUSE_S)
            await duty.pause()


async def _half_open(port: int, duty: Duty) -> None:
    async with connected(port) as socket:
        if socket is not None and await socket.send(_BEGIN):
            await socket.until_hung_up()
