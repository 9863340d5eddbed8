"""Round trips that several readers of one session share.

Readers run concurrently, each as if it had the session to itself. Their statements are sent in one
round trip, once all readers wait. If a statement fails, it fails for all readers whose statements
were sent with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from foundation.postgres.session import StatementResult, StatementRunner, Step

T = TypeVar("T")
PendingTrip = tuple[Sequence[Step], asyncio.Future[list[StatementResult]]]


class SharedTrips:
    """The readers of a session, which has no other users meanwhile."""

    def __init__(self, session: StatementRunner) -> None:
        self._session = session
        self._readers = 0
        self._pending: list[PendingTrip] = []

    async def gather(
        self, readers: Sequence[Callable[[StatementRunner], Awaitable[T]]]
    ) -> list[T | BaseException]:
        """Run readers to completion; return what each returned or raised."""
        self._readers += len(readers)
        return await asyncio.gather(*map(self._read, readers), return_exceptions=True)

    async def run(self, steps: Sequence[Step]) -> list[StatementResult]:
        """Send the statements with those of the other readers."""
        results: asyncio.Future[list[StatementResult]] = asyncio.get_running_loop().create_future()
        self._pending.append((steps, results))
        await self._send_if_all_wait()
        return await results

    async def _read(self, reader: Callable[[StatementRunner], Awaitable[T]]) -> T:
        try:
            return await reader(self)
        finally:
            self._readers -= 1
            await self._send_if_all_wait()

    async def _send_if_all_wait(self) -> None:
        if len(self._pending) < max(1, self._readers):
            return
        trips, self._pending = self._pending, []
        try:
            replies = await self._session.run([step for steps, _ in trips for step in steps])
        except BaseException as error:
            _fail(trips, error)
            if not isinstance(error, Exception):
                raise
            return
        begin = 0
        for steps, results in trips:
            if not results.done():
                results.set_result(replies[begin : begin + len(steps)])
            begin += len(steps)


def _fail(trips: Sequence[PendingTrip], failed: BaseException) -> None:
    for _, results in trips:
        if results.done():
            continue
        if isinstance(failed, Exception):
            results.set_exception(failed)
        else:
            results.cancel()
