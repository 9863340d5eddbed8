"""Closes a rejected connection while its client is still sending.

Closing a socket with unread bytes resets the connection, and the client may lose the response. So
the server closes its side and discards further data, up to a limit of bytes and time.
"""

from __future__ import annotations

import asyncio

from uvicorn.server import ServerState

from rillbase_server.transport.connection_table import ConnectionEntry, ConnectionTable

LINGER_S = 2.0
LINGER_BYTES = 1024 * 1024


class LingeringClose(asyncio.BufferedProtocol):
    """Discards data until the client closes the connection, after the last byte was written."""

    def __init__(
        self,
        transport: asyncio.Transport,
        entry: ConnectionEntry,
        table: ConnectionTable,
        state: ServerState,
    ) -> None:
        self._transport = transport
        self._entry = entry
        self._table = table
        self._connections = state.connections
        self._left_bytes = LINGER_BYTES
        self._until_s = asyncio.get_running_loop().time() + LINGER_S
        entry.owner = self
        self._connections.add(self)  # type: ignore[arg-type]  # whatever has `shutdown`
        transport.set_protocol(self)
        if transport.can_write_eof():
            transport.write_eof()
        transport.resume_reading()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._table.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._left_bytes -= nbytes
        if self._left_bytes < 0:
            self.abort()

    def check(self, now_s: float) -> None:
        if now_s > self._until_s:
            self.abort()

    def backlog(self) -> None:
        """Nothing more is sent."""

    def abort(self) -> None:
        self._transport.abort()

    def shutdown(self) -> None:
        self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._table.remove(self._entry)
