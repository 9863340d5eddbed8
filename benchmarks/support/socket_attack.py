"""WebSockets that send nothing, too much, or without end, and readers that do not read."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import lru_cache

from benchmarks.support.duty import Duty
from benchmarks.support.raw_sockets import RawSocket, connected

#: Concurrent connections.
BOMBS, IDLE, FRAGMENTED, SLOW_READERS = 20, 1_500, 10, 20
BOMB_BYTES = 31_000_000
#: Twenty bombs at once, repeated after this time.
BOMBS_PAUSE_S, RETRY_S = 5.0, 0.5
#: Limit of one fragmented message, in case the server accepts all of it.
FRAGMENTS, FRAGMENT_BYTES = 16_384, 4_096
#: How much of a response a slow reader receives before its connection is full.
SLOW_READER_LIMIT = 1_024
#: Requests that a slow reader sends before it could have read one response.
PIPELINED = 200
_HANDSHAKE = (
    b"GET /v1/realtime HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)
_ASK = b"GET /api/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * PIPELINED
_TEXT, _CONTINUATION, _FINAL, _DEFLATED, _MASKED = 0x1, 0x0, 0x80, 0x40, 0x80

Attack = Callable[[int, Duty], Awaitable[None]]


async def run(port: int, duty: Duty) -> None:
    """Attack until cancelled."""
    kinds: tuple[tuple[Attack, int, float], ...] = (
        (_bomb, BOMBS, BOMBS_PAUSE_S),
        (_idle, IDLE, RETRY_S),
        (_fragmented, FRAGMENTED, RETRY_S),
        (_slow_reader, SLOW_READERS, RETRY_S),
    )
    async with asyncio.TaskGroup() as attacks:
        for attack, connections, pause_s in kinds:
            for _ in range(connections):
                attacks.create_task(_again(attack, port, duty, pause_s))
                await duty.pause()


async def _again(attack: Attack, port: int, duty: Duty, pause_s: float) -> None:
    while True:
        await attack(port, duty)
        await asyncio.sleep(pause_s)
        await duty.pause()


async def _bomb(port: int, _: Duty) -> None:
    async with _upgraded(port) as socket:
        if socket is not None and await socket.send(bomb()):
            await socket.until_hung_up()


async def _idle(port: int, _: Duty) -> None:
    async with _upgraded(port) as socket:
        if socket is not None:
            await socket.until_hung_up()


async def _fragmented(port: int, duty: Duty) -> None:
    part = b" " * FRAGMENT_BYTES
    async with _upgraded(port) as socket:
        if socket is None or not await socket.send(frame(_TEXT, part)):
            return
        for _ in range(FRAGMENTS):
            await duty.pause()
            if not await socket.send(frame(_CONTINUATION, part)):
                return


async def _slow_reader(port: int, duty: Duty) -> None:
    """Request much and read almost nothing."""
    async with connected(port, limit=SLOW_READER_LIMIT) as socket:
        if socket is None or not await socket.send(_ASK):
            return
        for _ in range(60):
            await asyncio.sleep(1)
            await duty.pause()
            if not await socket.send(b""):
                return


@asynccontextmanager
async def _upgraded(port: int) -> AsyncIterator[RawSocket | None]:
    """Open a WebSocket without credentials; None if the server rejects it."""
    async with connected(port) as socket:
        welcome = socket is not None and await socket.send(_HANDSHAKE)
        if socket is None or not welcome or b" 101 " not in (await socket.receive())[:32]:
            yield None
        else:
            yield socket


@lru_cache(maxsize=1)
def bomb() -> bytes:
    """Return one deflated frame with a very long text."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = deflate.compress(b" " * BOMB_BYTES) + deflate.flush(zlib.Z_SYNC_FLUSH)
    return frame(_TEXT | _FINAL | _DEFLATED, data[:-4])


def frame(head: int, data: bytes) -> bytes:
    """Return a client's frame; its mask is zero, so that its bytes are unchanged."""
    size = len(data)
    if size < 126:
        length = bytes([_MASKED | size])
    elif size < 1 << 16:
        length = bytes([_MASKED | 126]) + struct.pack("!H", size)
    else:
        length = bytes([_MASKED | 127]) + struct.pack("!Q", size)
    return bytes([head]) + length + bytes(4) + data
