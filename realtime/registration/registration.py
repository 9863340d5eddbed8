"""Registers queries with the grid's nodes: positions, then rows and snapshot, then the query.

The order closes the gaps: what the write streams receive after the positions is replayed by the
nodes, what the snapshot sees is in the rows, and no write is in neither.

A hub that reconnects to an event layer without its queries has thousands of them to register. The
number of registrations in flight is bounded; each takes along the waiting queries of the same
collection, so that they share a snapshot and a call. Without a backlog a query is registered at
once. A tenant has at most half of the slots, and under contention a slot pauses after use, so that
more queries are batched: a query that no index supports may scan its whole collection, and must not
delay other tenants.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol
from uuid import UUID

from documents.outbox.entries import TransactionSnapshot
from documents.store import facts
from documents.store.facts import CollectionFacts
from documents.store.large_results import (
    LARGE_BYTES,
    ReadAllowance,
    ResultDoesNotFit,
    in_turn,
)
from documents.store.lookups import LookupCollection
from documents.store.queries import native
from foundation import bulk_budget
from foundation.errors import ApiError, ResultTooLarge
from foundation.event_loop_budget import EventLoopBudget
from foundation.turns import TurnScheduler
from realtime.events.layer import GridLayer, StreamEnds
from realtime.grid.layout import GridEpoch
from realtime.registration.initial_rows import InitialRead, InitialRows, Row, read_all
from rillbase_native import LiveQuery, Sort, query_partition

#: Rows that a sort node keeps beyond a window: half of the window, within bounds.
LEAST_SLACK, MOST_SLACK = 16, 1_000
#: Queries of one snapshot: it should not be held for long. While several tenants are active, they
#: should not hold the event loop for long either.
AT_ONCE, AT_ONCE_IF_CONTENDED = 100, 16
#: A slot pauses for this multiple of the time that its turn took, since PostgreSQL reads
#: collections for it.
RESTS = 3.0


@dataclass(frozen=True, slots=True)
class CollectionReference:
    """The collection that a query reads, by name and by identity."""

    tenant_id: UUID
    collection: str


@dataclass(frozen=True, slots=True)
class RegistrationResult:
    """What a hub needs to know about a registration."""

    activation: int
    #: Position of the request in the request stream: nodes include it in their replies.
    request: str
    log_end: str
    snapshot: TransactionSnapshot
    #: The rows; for a query that groups, the rows of groups.
    rows: list[Row]
    #: Number of documents that are omitted because they cannot be evaluated.
    unevaluated: int


class RulesChanged(Exception):
    """The collection or its access rules have changed since the query was created."""


def slack_for(offset: int, limit: int | None) -> int:
    """Return the slack of a new window."""
    return min(max((offset + (limit or 0)) // 2, LEAST_SLACK), MOST_SLACK)


async def register(
    layer: GridLayer,
    grid: GridEpoch,
    hub: str,
    query: LiveQuery,
    source: CollectionReference,
    *,
    renewal: bool,
) -> RegistrationResult:
    """Read a query's rows and register it on behalf of a hub."""
    (registration,) = await register_all(layer, grid, hub, [query], source, renewal=renewal)
    return registration


async def register_all(
    layer: GridLayer,
    grid: GridEpoch,
    hub: str,
    queries: Sequence[LiveQuery],
    source: CollectionReference,
    *,
    renewal: bool,
) -> list[RegistrationResult]:
    """Register several queries of one collection and query partition in one snapshot and one call.
    Queries that do not fit are left to another call, so the result may be shorter.
    """
    register_now = partial(_register_all, layer, grid, hub, queries, source, renewal)
    try:
        return await in_turn(source.tenant_id, register_now)
    except ResultDoesNotFit:
        raise ResultTooLarge(f"The rows are larger than {LARGE_BYTES} bytes.") from None


async def _register_all(
    layer: GridLayer,
    grid: GridEpoch,
    hub: str,
    queries: Sequence[LiveQuery],
    source: CollectionReference,
    renewal: bool,  # noqa: FBT001 -- `partial` passes it by position
    allowance: ReadAllowance,
) -> list[RegistrationResult]:
    partition = query_partition(queries[0].hash, grid.query_partitions)
    ends = await layer.ends(grid.write_partitions, partition)
    # Registrations have turns of their own.
    read = await _rows(queries, source, replace(allowance, rows=math.inf, has_turn=False))
    budget, requests = EventLoopBudget(), []
    for query, rows in zip(queries, read, strict=False):
        request = _request(query, ends, rows, renewal=renewal)
        requests.append((query.hash, query.definition(), request))
        await budget.yield_if_spent()
    registered = await layer.register_all(partition, hub, ends.life, requests)
    return [
        RegistrationResult(
            reply.activation,
            reply.request,
            ends.log,
            rows.snapshot,
            _result_rows(query, rows),
            rows.unevaluated,
        )
        for query, reply, rows in zip(queries, registered, read, strict=False)
    ]


def _result_rows(query: LiveQuery, read: InitialRows) -> list[Row]:
    """Return the result for the rows that were read: groups, or rows with lookups."""
    if not (query.grouped or query.looks_up):
        return read.rows
    return native(lambda: query.shown(read.rows, read.foreign))


async def _rows(
    queries: Sequence[LiveQuery], source: CollectionReference, allowance: ReadAllowance
) -> list[InitialRows]:
    # The rule is part of a query's filter already.
    budget, reads = EventLoopBudget(), []
    for query in queries:
        extent = replace(await _extent(query, source), readable=query.readable())
        reads.append((query.filter(), extent))
        await budget.yield_if_spent()
    read = await read_all(source.tenant_id, source.collection, reads, allowance)
    for query, rows in zip(queries, read, strict=False):
        compare(rows.collection, query.collection, query.rules_version)
    return read


def compare(current: CollectionFacts, collection: bytes, rules_version: int) -> None:
    """Raise `RulesChanged` unless collection and rules are the same, if rules apply."""
    if current.raw != collection or (rules_version and current.rules_version != rules_version):
        raise RulesChanged


async def _extent(query: LiveQuery, source: CollectionReference) -> InitialRead:
    if (group := query.group()) is not None:
        # Sort and window are those of the groups.
        return InitialRead(Sort.parse(None), None, has_window=False, group=group)
    first = None if query.limit is None else query.offset + query.limit + query.slack
    if not query.looks_up:
        return InitialRead(query.sort(), first, query.sorted)
    has_window = first is not None or query.offset > 0
    return InitialRead(
        query.sort(),
        first,
        has_window,
        lookup_query=query,
        sides=await sides_of_query(query, source),
    )


async def sides_of_query(query: LiveQuery, source: CollectionReference) -> list[LookupCollection]:
    """Return the collections of the lookups, or raise if they have changed."""
    sides = []
    for name, (collection, rules_version, rule) in zip(
        query.side_names(), query.sides(), strict=True
    ):
        current = await facts.find(source.tenant_id, name)
        if current.raw != collection or current.rules_version != rules_version:
            current = await facts.find(source.tenant_id, name, fresh=True)
        compare(current, collection, rules_version)
        sides.append(LookupCollection(current, rule if rules_version else None))
    return sides


def _request(query: LiveQuery, ends: StreamEnds, rows: InitialRows, *, renewal: bool) -> bytes:
    return query.request(
        list(ends.writes),
        as_tuple(rows.snapshot),
        rows.rows,
        complete=rows.complete,
        renewal=renewal,
        foreign=rows.foreign,
    )


def as_tuple(snapshot: TransactionSnapshot) -> tuple[int, int, list[int]]:
    """Return a snapshot as the native code takes it."""
    return snapshot.xmin, snapshot.xmax, list(snapshot.running)


class NotWatched(Exception):
    """The query has no subscribers any more."""


class QueryRegistrar(Protocol):
    """Registers several queries of one collection, or the first of them."""

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

    def __init__(self, max_concurrent: int, registers: QueryRegistrar = register_all) -> None:
        per_target = max(1, max_concurrent // 2)
        self._turns = TurnScheduler(
            max_concurrent, per_target, bulk_budget.subscription_starts, rests=RESTS
        )
        self._registers = registers
        self._waiting: dict[_Target, list[_PendingRegistration]] = {}
        self._max_pumps = per_target
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
        # A batch completes as a whole, but its queries continue one by one.
        await bulk_budget.subscription_starts.wait(source.tenant_id, is_last=True)
        return registration

    async def _pump(self, target: _Target) -> None:
        """Register the waiting queries of one target, until there are none."""
        budget, tenant = bulk_budget.subscription_starts, target.source.tenant_id
        try:
            while target in self._waiting:
                await budget.wait_for_batch(tenant)
                async with self._turns.turn(tenant):
                    if batch := self._next_batch(target):
                        await budget.metered(tenant, self._serve(target, batch))
        finally:
            self._pumps[target] -= 1
            if not self._pumps[target]:
                del self._pumps[target]
                # Only a cancelled pump leaves waiting queries.
                _fail(self._waiting.pop(target, []), asyncio.CancelledError())

    def _next_batch(self, target: _Target) -> list[_PendingRegistration]:
        """Take the next queries to register, dropping those without subscribers."""
        watched = list[_PendingRegistration]()
        for pending in self._waiting.pop(target, []):
            if pending.answer.done():
                continue
            try:
                is_watched = pending.is_watched()
            except Exception as error:  # noqa: BLE001 -- must not affect the others of the batch
                pending.answer.set_exception(error)
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
        """Register a batch. Every future is resolved, also on cancellation."""
        queries = [pending.query for pending in batch]
        layer, grid, hub, source, _ = target
        try:
            registered = await self._registers(layer, grid, hub, queries, source, renewal=False)
            for pending, registration in zip(batch, registered, strict=False):
                if not pending.answer.done():
                    pending.answer.set_result(registration)
            if rest := batch[len(registered) :]:
                await self._serve(target, rest)
        except (ApiError, RulesChanged) as error:
            if len(batch) == 1:
                _fail(batch, error)
            else:
                await self._serve_one_by_one(target, batch)
        except BaseException as error:
            _fail(batch, error)
            if not isinstance(error, Exception):
                raise

    async def _serve_one_by_one(self, target: _Target, batch: list[_PendingRegistration]) -> None:
        """Register queries one by one, to find the one that is rejected."""
        try:
            for pending in batch:
                await self._serve(target, [pending])
        except BaseException as error:
            _fail(batch, error)
            raise


def _fail(batch: list[_PendingRegistration], failed: BaseException) -> None:
    for pending in batch:
        if pending.answer.done():
            continue
        if isinstance(failed, asyncio.CancelledError):
            pending.answer.cancel()
        else:
            pending.answer.set_exception(failed)
