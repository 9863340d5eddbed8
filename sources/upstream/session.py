"""An ordinary connection to a source's database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from psycopg import AsyncConnection

from sources.upstream.proxy import proxied
from sources.upstream.server_stream import ROW_BYTES


@asynccontextmanager
async def session(conninfo: str, *, row_bytes: int = ROW_BYTES) -> AsyncIterator[AsyncConnection]:
    """Connect, and close immediately at the end of the block, even when cancelled."""
    async with proxied(conninfo, row_bytes=row_bytes) as local:
        connection = await AsyncConnection.connect(local, autocommit=True)
        try:
            yield connection
        finally:
            await connection.close()
