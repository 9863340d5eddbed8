"""Sockets of an attacker that ignores the protocol: bytes are sent unchanged, responses are
ignored.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

CONNECT_S = 5.0
_ANSWER_BYTES = 65_536


class RawSocket:
    """One connection to the attacked server. Nothing that the server does is an error."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes, *, timeout_s: float = 5.0) -> bool:
        """Send; return whether the server accepts it and is still connected."""
        try:
            async with asyncio.timeout(timeout_s):
                self._writer.write(data)
                await self._writer.drain()
        except (OSError, TimeoutError):
            return False
        return not self._reader.at_eof()

    async def receive(self, *, timeout_s: float = 5.0) -> bytes:
        """Return what the server has sent; empty if it has disconnected or sent nothing."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._reader.read(_ANSWER_BYTES)
        except (OSError, TimeoutError):
            return b""

    async def until_hung_up(self) -> None:
        """Wait until the server disconnects."""
        with contextlib.suppress(OSError):
            while await self._reader.read(_ANSWER_BYTES):
                pass


@asynccontextmanager
async def connected(port: int, *, limit: int = _ANSWER_BYTES) -> AsyncIterator[RawSocket | None]:
    """Connect; None if the server does not accept the connection."""
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=limit)
    except (OSError, TimeoutError):
        yield None
        return
    try:
        yield RawSocket(reader, writer)
    finally:
        writer.transport.abort()
