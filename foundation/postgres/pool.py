"""Sessions of one role, for one event loop.

A session is handed out to one task at a time. Connections are opened when needed, up to a bound;
when all are in use, callers wait in line for a bounded time. A session that broke is dropped,
as is one whose buffers have become large.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

import psycopg

from foundation.postgres.session import PostgresSession

logger = logging.getLogger(__name__)

WAIT_S = 5.0
#: Bytes of the largest round trip after which a session is kept.
KEPT_BUFFER_BYTES = 2 * 1024 * 1024


class SessionLoan:
    """A session of a pool, for one `async with`."""

    __slots__ = ("_pool", "_session")

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool

    async def __aenter__(self) -> PostgresSession:
        self._session = await self._pool.take()
        return self._session

    async def __aexit__(self, *_: object) -> None:
        self._pool.return_session(self._session)


class SessionPool:
    """Bounded, last in first out: warm connections are reused."""

    def __init__(self, conninfo: Callable[[], str], max_size: int) -> None:
        self._conninfo = conninfo
        self._free: list[PostgresSession] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._room = max_size

    def session(self) -> SessionLoan:
        """Lend a session. Closing it rolls back a transaction that is left open."""
        return SessionLoan(self)

    async def take(self) -> PostgresSession:
        await self._await_room()
        try:
            while self._free:
                session = self._free.pop()
                if not session.broken:
                    return session
                session.close()
            return await PostgresSession.connect(self._conninfo())
        except BaseException:
            self._release_slot()
            raise

    async def _await_room(self) -> None:
        if self._room > 0 and not self._waiting:
            self._room -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(WAIT_S):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._release_slot()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            if isinstance(error, TimeoutError):
                raise psycopg.OperationalError(
                    "no database connection became free in time"
                ) from None
            raise

    def return_session(self, session: PostgresSession) -> None:
        is_large = session.largest_sent_bytes > KEPT_BUFFER_BYTES
        if not session.is_idle or is_large:
            session.close()
        else:
            self._free.append(session)
        self._release_slot()

    def _release_slot(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._room += 1

    def close(self) -> None:
        """Close the free sessions. Sessions in use are closed when they are returned broken."""
        while self._free:
            self._free.pop().close()
