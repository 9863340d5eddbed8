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
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from foundation import bulk_budget
from foundation.errors import ApiError
from foundation.turns import Turns
from realtime.events.layer import GridLayer, query_partition
from realtime.grid.layout import GridEpoch
from realtime.registration.register import (
    CollectionReference,
    OtherRules,
    RegistrationResult,
    register_all,
)
from rillbase_native import LiveQuery

_Place = tuple[GridEpoch, CollectionReference, int]

#: Queries of one snapshot: it should not be held for long. While several tenants are active, they
#: should not hold the event loop for long either.
AT_ONCE, AT_ONCE_IF_CONTENDED = 100, 16
#: A turn rests for so many times as long as it took: PostgreSQL reads collections meanwhile.
RESTS = 3.0


class NotWatched(Exception):
    """The query has no subscribers any more."""


class QueryRegistrar(Protocol):
    """What registers several queries of one collection, or the first ones of them."""

    def __call__(
        self,
        layer: GridLayer,
        grid: GridEpoch,
        hub: str,
        queries: Sequence[LiveQuery],
        source: CollectionReference,
        *,
        renewal: bool,
    ) -> Awaitable[Sequence[RegistrationResult]]: ...


@dataclass(slots=True, eq=False)
class _PendingRegistration:
    query: LiveQuery
    is_watched: Callable[[], bool]
    answer: asyncio.Future[RegistrationResult]


class RegistrationBatcher:
    """Batches the registrations of one hub."""

    def __init__(self, under_way: int, registers: QueryRegistrar = register_all) -> None:
        of_one = max(1, under_way // 2)
        self._turns = Turns(under_way, of_one, bulk_budget.subscription_starts, rests=RESTS)
        self._registers = registers
        self._waiting: dict[_Place, list[_PendingRegistration]] = {}
        self._max_pumps = of_one
        self._pumps = Counter[_Place]()
        self._tasks: set[asyncio.Task[None]] = set()

    async def register(
        self,
        layer: GridLayer,
        grid: GridEpoch,
        hub: str,
        query: LiveQuery,
        source: CollectionReference,
        is_watched: Callable[[], bool],
    ) -> RegistrationResult:
        """Register a query, alone or with others.

        Raises what `register` does, and `NotWatched` if that is not needed when its turn comes.
        """
        mine = _PendingRegistration(query, is_watched, asyncio.get_running_loop().create_future())
        place = (grid, source, query_partition(query.hash, grid.query_partitions))
        self._waiting.setdefault(place, []).append(mine)
        if self._pumps[place] < self._max_pumps:
            self._pumps[place] += 1
            pump = asyncio.create_task(self._pump(layer, hub, place))
            self._tasks.add(pump)
            pump.add_done_callback(self._tasks.discard)
        registration = await mine.answer
        # A whole batch is answered at once, but its queries continue one by one.
        await bulk_budget.subscription_starts.wait(source.tenant_id, is_last=True)
        return registration

    async def _pump(self, layer: GridLayer, hub: str, place: _Place) -> None:
        """Register what waits for one place, until nothing does."""
        grid, source, _ = place
        budget = bulk_budget.subscription_starts
        try:
            while place in self._waiting:
                await budget.wait_for_batch(source.tenant_id)
                async with self._turns.turn(source.tenant_id):
                    if taken := self._take(place):
                        work = self._serve(layer, grid, hub, source, taken)
                        await budget.metered(source.tenant_id, work)
        finally:
            self._pumps[place] -= 1
            if not self._pumps[place]:
                del self._pumps[place]

    def _take(self, place: _Place) -> list[_PendingRegistration]:
        """Take the next queries to register, dropping those without subscribers."""
        wanted = list[_PendingRegistration]()
        for one in self._waiting.pop(place, []):
            if one.answer.done():
                continue
            if one.is_watched():
                wanted.append(one)
            else:
                one.answer.set_exception(NotWatched())
        is_contended = bulk_budget.subscription_starts.contention.is_contended
        n_taken = AT_ONCE_IF_CONTENDED if is_contended else AT_ONCE
        if rest := wanted[n_taken:]:
            self._waiting[place] = rest
        return wanted[:n_taken]

    async def _serve(
        self,
        layer: GridLayer,
        grid: GridEpoch,
        hub: str,
        source: CollectionReference,
        taken: list[_PendingRegistration],
    ) -> None:
        queries = [one.query for one in taken]
        try:
            registrations = await self._registers(layer, grid, hub, queries, source, renewal=False)
            for one, registration in zip(taken, registrations, strict=False):
                if not one.answer.done():
                    one.answer.set_result(registration)
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
            if left := taken[len(registrations) :]:
                await self._serve(layer, grid, hub, source, left)


def _fail(taken: list[_PendingRegistration], failed: BaseException) -> None:
    for one in taken:
        if one.answer.done():
            continue
        if isinstance(failed, asyncio.CancelledError):
            one.answer.cancel()
        else:
            one.answer.set_exception(failed)
