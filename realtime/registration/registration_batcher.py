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
from typing import NamedTuple, Protocol

from foundation import bulk_budget
from foundation.errors import ApiError
from foundation.turns import Turns
from realtime.events.layer import GridLayer, query_partition
from realtime.grid.layout import GridEpoch
from realtime.registration.register import (
    OtherRules,
    RegistrationResult,
    CollectionReference,
    register_all,
)
from rillbase_native import LiveQuery

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


class _Target(NamedTuple):
    """What registrations of one batch have in common."""

    layer: GridLayer
    grid: GridEpoch
    hub: str
    source: CollectionReference
    query_partition: int


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
        self._waiting: dict[_Target, list[_PendingRegistration]] = {}
        self._max_pumps = of_one
        self._pumps = Counter[_Target]()
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
        pending = _PendingRegistration(
            query, is_watched, asyncio.get_running_loop().create_future()
        )
        partition = query_partition(query.hash, grid.query_partitions)
        target = _Target(layer, grid, hub, source, partition)
        self._waiting.setdefault(target, []).append(pending)
        if self._pumps[target] < self._max_pumps:
            self._pumps[target] += 1
            pump = asyncio.create_task(self._pump(target))
            self._tasks.add(pump)
            pump.add_done_callback(self._tasks.discard)
        registration = await pending.answer
        # A whole batch is answered at once, but its queries continue one by one.
        await bulk_budget.subscription_starts.wait(source.tenant_id, is_last=True)
        return registration

    async def _pump(self, target: _Target) -> None:
        """Register what waits for one target, until nothing does."""
        budget, tenant = bulk_budget.subscription_starts, target.source.tenant_id
        try:
            while target in self._waiting:
                await budget.wait_for_batch(tenant)
                async with self._turns.turn(tenant):
                    if batch := self._take(target):
                        await budget.metered(tenant, self._serve(target, batch))
        finally:
            self._pumps[target] -= 1
            if not self._pumps[target]:
                del self._pumps[target]
                # Only a pump that was cancelled leaves any.
                _fail(self._waiting.pop(target, []), asyncio.CancelledError())

    def _take(self, target: _Target) -> list[_PendingRegistration]:
        """Take the next queries to register, dropping those without subscribers."""
        watched = list[_PendingRegistration]()
        for pending in self._waiting.pop(target, []):
            if pending.answer.done():
                continue
            try:
                is_watched = pending.is_watched()
            except Exception as failed:  # noqa: BLE001 -- the others of the batch must not get it
                pending.answer.set_exception(failed)
                continue
            if is_watched:
                watched.append(pending)
            else:
                pending.answer.set_exception(NotWatched())
        is_contended = bulk_budget.subscription_starts.contention.is_contended
        batch_size = AT_ONCE_IF_CONTENDED if is_contended else AT_ONCE
        if rest := watched[batch_size:]:
            self._waiting[target] = rest
        return watched[:batch_size]

    async def _serve(self, target: _Target, batch: list[_PendingRegistration]) -> None:
        """Register a batch. Every answer is resolved, also if this is cancelled."""
        queries = [pending.query for pending in batch]
        layer, grid, hub, source, _ = target
        try:
            registered = await self._registers(layer, grid, hub, queries, source, renewal=False)
            for pending, registration in zip(batch, registered, strict=False):
                if not pending.answer.done():
                    pending.answer.set_result(registration)
            if rest := batch[len(registered) :]:
                await self._serve(target, rest)
        except (ApiError, OtherRules) as refused:
            if len(batch) == 1:
                _fail(batch, refused)
            else:
                await self._serve_one_by_one(target, batch)
        except BaseException as failed:
            _fail(batch, failed)
            if not isinstance(failed, Exception):
                raise

    async def _serve_one_by_one(self, target: _Target, batch: list[_PendingRegistration]) -> None:
        """Find out which of several is refused."""
        try:
            for pending in batch:
                await self._serve(target, [pending])
        except BaseException as failed:
            _fail(batch, failed)
            raise


def _fail(batch: list[_PendingRegistration], failed: BaseException) -> None:
    for pending in batch:
        if pending.answer.done():
            continue
        if isinstance(failed, asyncio.CancelledError):
            pending.answer.cancel()
        else:
            pending.answer.set_exception(failed)
