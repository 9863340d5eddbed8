"""Batches queries that wait for registration at the same time.

A hub that reconnects to an event layer without its queries has thousands of them to register. The
number of registrations in flight is bounded; each takes along the waiting queries of the same
collection, so that they share a snapshot and a call. Without a backlog a query is registered at
once. A tenant has at most half of the slots, and under contention a slot pauses after use, so that
more queries are batched: a query that no index supports may scan its whole collection, and must not
delay other tenants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

from foundation import bulk_budget
from foundation.errors import ApiError
from foundation.turns import Turns
from realtime.events.layer import GridLayer, query_partition
from realtime.grid.layout import Grid
from realtime.registration.register import OtherRules, Registration, Source, register_all
from rillbase_native import LiveQuery

_Place = tuple[Grid, Source, int]

#: Queries of one snapshot: it should not be held for long.
AT_ONCE = 100
#: Whoever is told goes on in the loop's next round, which nobody else shall wait for long.
TOLD_AT_ONCE = 2
#: A turn rests for so many times as long as it took: PostgreSQL reads collections meanwhile.
RESTS = 3.0


class Registers(Protocol):
    """What registers several queries of one collection, or the first ones of them."""

    def __call__(
        self,
        layer: GridLayer,
        grid: Grid,
        hub: str,
        queries: Sequence[LiveQuery],
        source: Source,
        *,
        renewal: bool,
    ) -> Awaitable[Sequence[Registration]]: ...


@dataclass(slots=True, eq=False)
class _PendingRegistration:
    query: LiveQuery
    answer: asyncio.Future[Registration]
    #: Whether somebody who had its turn has taken it along.
    taken: bool = False


class RegistrationBatcher:
    """Batches the registrations of one hub."""

    def __init__(self, under_way: int, registers: Registers = register_all) -> None:
        of_one = max(1, under_way // 2)
        self._turns = Turns(under_way, of_one, bulk_budget.tenants, rests=RESTS)
        self._registers = registers
        self._waiting: dict[_Place, list[_PendingRegistration]] = {}

    async def register(
        self, layer: GridLayer, grid: Grid, hub: str, query: LiveQuery, source: Source
    ) -> Registration:
        """Register a query, alone or with others; raise what `register` does."""
        mine = _PendingRegistration(query, asyncio.get_running_loop().create_future())
        place = (grid, source, query_partition(query.hash, grid.query_partitions))
        self._waiting.setdefault(place, []).append(mine)
        async with self._turns.turn(source.tenant_id):
            while not mine.taken:
                await self._serve(layer, grid, hub, source, self._take(place))
        return await mine.answer

    def _take(self, place: _Place) -> list[_PendingRegistration]:
        waiting = self._waiting[place]
        taken, waiting[:AT_ONCE] = waiting[:AT_ONCE], []
        if not waiting:
            del self._waiting[place]
        for one in taken:
            one.taken = True
        return taken

    async def _serve(
        self,
        layer: GridLayer,
        grid: Grid,
        hub: str,
        source: Source,
        taken: list[_PendingRegistration],
    ) -> None:
        queries = [one.query for one in taken]
        try:
            found = await self._registers(layer, grid, hub, queries, source, renewal=False)
            await _tell(taken, found)
        except (ApiError, OtherRules) as refused:
            if len(taken) == 1:
                _fail(taken, refused)
                return
            # One of them is refused; each learns for itself which.
            for one in taken:
                await self._serve(layer, grid, hub, source, [one])
        except BaseException as failed:
            _fail(taken, failed)
            if not isinstance(failed, Exception):
                raise
        else:
            if left := taken[len(found) :]:
                await self._serve(layer, grid, hub, source, left)


async def _tell(taken: list[_PendingRegistration], found: Sequence[Registration]) -> None:
    for number, (one, registration) in enumerate(zip(taken, found, strict=False), 1):
        if not one.answer.done():
            one.answer.set_result(registration)
        if number % TOLD_AT_ONCE == 0:
            await asyncio.sleep(0)


def _fail(taken: list[_PendingRegistration], failed: BaseException) -> None:
    for one in taken:
        if one.answer.done():
            continue
        if isinstance(failed, asyncio.CancelledError):
            one.answer.cancel()
        else:
            one.answer.set_exception(failed)
