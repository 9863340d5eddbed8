"""Sessions of one role, for one event loop.

A session is handed out to one task at a time. Connections are opened when needed, up to a bound;
when all are in use, callers wait in line for a bounded time. A session that broke is dropped,
as is one whose buffers have become large.

A party, such as a tenant, has at most three times as many sessions as are left for others: 12 of
16 if it is the only one, 6 each if there are two. So newcomers find a free session, however many
one party requests. Waiting parties take turns.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable

import psycopg

from foundation.postgres.session import PostgresSession

logger = logging.getLogger(__name__)

WAIT_S = 5.0
#: Bytes of the largest round trip after which a session is kept.
KEPT_BUFFER_BYTES = 2 * 1024 * 1024
#: The sessions of a party, per session that is left for others.
MAX_IN_USE_PER_FREE = 3


class SessionLoan:
    """A session of a pool, for one `async with`."""

    __slots__ = ("_party", "_pool", "_session")

    def __init__(self, pool: SessionPool, party: Hashable) -> None:
        self._pool = pool
        self._party = party

    async def __aenter__(self) -> PostgresSession:
        self._session = await self._pool.take(self._party)
        return self._session

    async def __aexit__(self, *_: object) -> None:
        self._pool.return_session(self._session, self._party)


class SessionPool:
    """Bounded, last in first out: warm connections are reused."""

    def __init__(self, conninfo: Callable[[], str], max_size: int) -> None:
        self._conninfo = conninfo
        self._idle: list[PostgresSession] = []
        self._free_slots = max_size
        self._in_use = Counter[Hashable]()
        #: By party; the one that has waited longest for a turn is the first.
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()

    def session(self, party: Hashable = None) -> SessionLoan:
        """Lend a session. Closing it rolls back a transaction that is left open. Callers without a
        party share one.
        """
        return SessionLoan(self, party)

    async def take(self, party: Hashable = None) -> PostgresSession:
        await self._take_slot(party)
        try:
            while self._idle:
                session = self._idle.pop()
                if not session.broken:
                    return session
                session.close()
            return await PostgresSession.connect(self._conninfo())
        except BaseException:
            self._release_slot(party)
            raise

    async def _take_slot(self, party: Hashable) -> None:
        if party not in self._waiting and self._has_slot(party):
            self._occupy_slot(party)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        turns = self._waiting.setdefault(party, deque())
        turns.append(turn)
        try:
            async with asyncio.timeout(WAIT_S):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._release_slot(party)
            elif turn in turns:
                turns.remove(turn)
                self._remove_if_empty(party)
            if isinstance(error, TimeoutError):
                raise psycopg.OperationalError(
                    "no database connection became free in time"
                ) from None
            raise

    def _has_slot(self, party: Hashable) -> bool:
        return self._in_use[party] < MAX_IN_USE_PER_FREE * self._free_slots

    def _occupy_slot(self, party: Hashable) -> None:
        self._free_slots -= 1
        self._in_use[party] += 1

    def return_session(self, session: PostgresSession, party: Hashable = None) -> None:
        is_large = session.largest_sent_bytes > KEPT_BUFFER_BYTES
        if not session.is_idle or is_large:
            session.close()
        else:
            self._idle.append(session)
        self._release_slot(party)

    def _release_slot(self, party: Hashable) -> None:
        self._free_slots += 1
        self._in_use[party] -= 1
        if not self._in_use[party]:
            del self._in_use[party]
        for waiting in list(self._waiting):
            if self._has_slot(waiting):
                self._give_turn(waiting)

    def _give_turn(self, party: Hashable) -> None:
        """Give a slot to the caller of a party that has waited longest."""
        turns = self._waiting[party]
        while turns:
            turn = turns.popleft()
            if not turn.done():
                self._occupy_slot(party)
                turn.set_result(None)
                break
        self._waiting.move_to_end(party)
        self._remove_if_empty(party)

    def _remove_if_empty(self, party: Hashable) -> None:
        if not self._waiting.get(party, True):
            del self._waiting[party]

    def close(self) -> None:
        """Close the idle sessions. Sessions in use are closed when they are returned broken."""
        while self._idle:
            self._idle.pop().close()
