"""An ordinary connection to a source's database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from psycopg import AsyncConnection


@asynccontextmanager
async def session(conninfo: str) -> AsyncIterator[AsyncConnection]:
    """Connect, and close at once however the block ends: a cancelled one waits for no answer."""
    connection = await AsyncConnection.connect(conninfo, autocommit=True)
    try:
        yield connection
    finally:
        await connection.close()
