"""Answers queries: reads a plan's rows in one snapshot and lets the native matcher decide."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Protocol, TypeVar
from uuid import UUID

from documents.store import cursors, facts
from documents.store.access import access_of
from documents.store.database import begin_snapshot, commit, pool
from documents.store.facts import CollectionFacts, ConcurrentDefinitionChange
from documents.store.large_results import LARGE_BYTES, LargeResult, ReadAllowance, in_turn, rendered
from documents.store.lookups import LookupCollection, read_sides, sides_of
from documents.store.nearest import NearestReads
from documents.store.node.snapshot import node_snapshot
from documents.store.notices import Notices
from documents.store.outdated_calls import OutdatedCall
from documents.store.planner import CandidatePlan
from documents.store.postgres_snapshot import PostgresSnapshot
from documents.store.reads import ATTEMPTS, CHECK, is_current
from documents.store.scan import LARGEST_BATCH, Row
from documents.store.snapshot import CandidateQuery, DocumentSnapshot, PlannedCandidates
from foundation import bulk_budget
from foundation.errors import QueryTooExpensive
from foundation.postgres import PostgresSession
from foundation.refusals import as_api_error
from rillbase_native import (
    Filter,
    Group,
    Lookups,
    Projection,
    QueryError,
    Selection,
    Sort,
    Value,
)
from tenants.principals import Principal

T = TypeVar("T")

DEFAULT_LIMIT, MAX_LIMIT = 100, 10_000
MAX_EXAMINED = 200_000
MAX_SECONDS = 5.0
MAX_SORT_BYTES = 64 * 1024 * 1024
#: A page ends after the document with which it exceeds this size.
PAGE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """A query of a collection."""

    filter: Filter
    sort: Sort
    projection: Projection | None = None
    offset: int = 0
    limit: int = DEFAULT_LIMIT
    cursor: str | None = None
    #: The grouping for which documents are read; without one, whole documents are read.
    group: Group | None = None
    lookups: Lookups | None = None


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A page as JSON, the cursor of the next one, and the notices."""

    items: bytes
    next_cursor: str | None
    notices: Notices


@dataclass(slots=True)
class CollectionReader:
    """A collection, open for reads in one snapshot with the access of one caller."""

    snapshot: DocumentSnapshot
    collection: CollectionFacts
    filter: Filter
    #: The caller's read filter, which is combined with the query's; None: everything is readable.
    readable: Filter | None
    allowance: ReadAllowance
    #: The time of the filter.
    now_ms: int
    #: Rows of the first batch, where those of several queries share a round trip.
    first_batch_rows: int = LARGEST_BATCH

    def request(self, sort: Sort, n_rows: int) -> CandidateQuery:
        """Return what to request for a number of matches."""
        return CandidateQuery(
            self.filter, sort, n_rows, self.now_ms, first_batch=self.first_batch_rows
        )

    async def candidates(self, request: CandidateQuery) -> PlannedCandidates:
        """Choose how the rows are read."""
        return await self.snapshot.candidates(self.collection, request)

    async def all_candidates(self) -> PlannedCandidates:
        """Choose how all matches are read, in any order."""
        request = self.request(Sort.parse(None), MAX_EXAMINED)
        return await self.candidates(replace(request, needs_all=True))


@asynccontextmanager
async def opened(
    tenant_id: UUID,
    name: str,
    query_filter: Filter,
    principal: Principal | None,
    *,
    allowance: ReadAllowance | None = None,
    is_fixed: bool = True,
) -> AsyncIterator[CollectionReader]:
    """Open a snapshot in which the collection has not changed, by default without a turn.
    `is_fixed` False: there is only one read.
    """
    async with _snapshot_of(tenant_id, name, is_fixed=is_fixed) as (snapshot, collection):
        access = access_of(collection, principal) if principal is not None else None
        readable = None if access is None else access.require("read")
        yield CollectionReader(
            snapshot,
            collection,
            query_filter if readable is None else query_filter.and_(readable),
            readable,
            allowance or ReadAllowance.without_turn(),
            now_ms=int(time.time() * 1000),
        )


@asynccontextmanager
async def _snapshot_of(
    tenant_id: UUID, name: str, *, is_fixed: bool
) -> AsyncIterator[tuple[DocumentSnapshot, CollectionFacts]]:
    collection = await facts.find(tenant_id, name)
    if collection.is_native:
        async with node_snapshot(tenant_id, is_fixed=is_fixed) as in_node:
            yield in_node, collection
        return
    async with pool().session(tenant_id) as session:
        collection = await _current(session, tenant_id, name)
        try:
            yield PostgresSnapshot(session), collection
        finally:
            if session.in_transaction:
                await session.run([commit()])


async def _current(session: PostgresSession, tenant_id: UUID, name: str) -> CollectionFacts:
    for attempt in range(ATTEMPTS):
        collection = await facts.find(tenant_id, name, fresh=attempt > 0)
        results = await session.run([*begin_snapshot(tenant_id), (CHECK, (collection.id.bytes,))])
        if is_current(results[-1], collection) and not collection.is_native:
            return collection
        await session.run([commit()])
        if collection.is_native:
            raise OutdatedCall
    raise ConcurrentDefinitionChange


async def select(
    tenant_id: UUID, name: str, query: DocumentQuery, principal: Principal | None
) -> QueryResult:
    """Run a query. The caller renders the page in the requested form."""
    return await in_turn(tenant_id, partial(_select, tenant_id, name, query, principal))


async def _select(
    tenant_id: UUID,
    name: str,
    query: DocumentQuery,
    principal: Principal | None,
    allowance: ReadAllowance,
) -> QueryResult:
    for attempt in range(ATTEMPTS):
        sides = await sides_of(tenant_id, query.lookups, principal, fresh=attempt > 0)
        async with opened(
            tenant_id,
            name,
            query.filter,
            principal,
            allowance=allowance,
            is_fixed=query.lookups is not None,
        ) as reader:
            facts.require_one_backend([reader.collection, *(side.collection for side in sides)])
            bound = cursors.binding(tenant_id, reader.collection.id, query.filter, query.sort)
            after = cursors.read(query.cursor, bound) if query.cursor else None
            selection, plan = await answer(reader, query, after)
            if await _embed(reader, selection, query.lookups, sides):
                return QueryResult(selection, plan, bound, tenant_id, name, query.limit)
    raise ConcurrentDefinitionChange


async def _embed(
    reader: CollectionReader,
    selection: Selection,
    lookups: Lookups | None,
    sides: Sequence[LookupCollection],
) -> bool:
    """Add the looked-up documents to each document. False: a collection has changed."""
    if lookups is None:
        return True
    tenant_id = reader.collection.tenant_id
    # Both wait for all documents of the page.
    size = {"rows": selection.matched, "size": selection.held_bytes}
    collect = partial(native, partial(selection.references, lookups))
    keys = await rendered(tenant_id, collect, **size)
    referenced = await read_sides(reader.snapshot, sides, keys, reader.now_ms, reader.allowance)
    if referenced is None:
        return False
    bodies = [[(document.key, document.body) for document in side] for side in referenced]
    embed = partial(native, partial(selection.embed, lookups, bodies, MAX_SORT_BYTES))
    await rendered(tenant_id, embed, **size)
    return True


@dataclass(slots=True)
class QueryResult:
    """The result of a query."""

    selection: Selection
    plan: CandidatePlan
    bound: bytes
    tenant_id: UUID
    collection: str
    #: The most documents of a page.
    limit: int

    async def page(self, *, canonical: bool) -> DocumentPage:
        finish = partial(native, partial(self.selection.finish, canonical=canonical))
        size = self.selection.held_bytes
        rows = min(self.selection.matched, self.limit)
        items, following, _ = await rendered(self.tenant_id, finish, rows=rows, size=size)
        cursor = None
        if following is not None:
            position = cursors.CursorPosition(*following, self.plan.ordering_index)
            cursor = cursors.write(position, self.bound)
        return DocumentPage(
            items, cursor, notices_of(self.selection, self.tenant_id, self.collection)
        )


class UnevaluatedCounter(Protocol):
    """Counts the documents that could not be evaluated."""

    @property
    def unevaluated(self) -> tuple[int, str | None]:
        """The number, and the reason for the first."""


def notices_of(counting: UnevaluatedCounter, tenant_id: UUID, collection: str) -> Notices:
    """Return the notices of a response, and record them in the error log."""
    notices = Notices()
    notices.add(counting.unevaluated)
    notices.log(tenant_id, collection)
    return notices


async def answer(
    reader: CollectionReader,
    query: DocumentQuery,
    after: cursors.CursorPosition | None = None,
    budget: Budget | None = None,
) -> tuple[Selection, CandidatePlan]:
    """Run a query in an open snapshot, with the filter of the reading. Also return the plan."""
    budget = budget or Budget()
    request = replace(reader.request(query.sort, query.offset + query.limit), after=after)
    nearest = await _nearest(reader, query, request, budget)
    if nearest is not None:
        return nearest
    for in_order in (True, False):
        candidates = await reader.candidates(replace(request, in_order=in_order))
        selection = _selection(reader, query, candidates.plan, after, budget.page_bytes)
        if await feed(reader, selection, candidates, budget):
            return selection, candidates.plan
    raise AssertionError("rows that are sorted afterwards are never misplaced")


async def _nearest(
    reader: CollectionReader, query: DocumentQuery, request: CandidateQuery, budget: Budget
) -> tuple[Selection, CandidatePlan] | None:
    """Read the nearest documents from a spatial index; None if that is not worthwhile."""
    rows = query.limit + (0 if request.after else query.offset)
    reads = NearestReads.of(
        reader.snapshot, reader.collection, replace(request, rows=rows), MAX_EXAMINED
    )
    while reads is not None and (read := await reads.next()) is not None:
        plan = read.candidates.plan
        within = replace(reader, filter=read.filter)
        selection = _selection(within, query, plan, request.after, budget.page_bytes)
        own_budget = budget if read.most_documents is None else Budget(read.most_documents)
        examined = own_budget.examined
        try:
            await feed(within, selection, read.candidates, own_budget)
        except QueryTooExpensive:
            if own_budget is budget:
                raise
            reads.are_too_many()
            continue
        if read.is_last or selection.row_count > rows:
            return selection, plan
        reads.are_too_few(read, own_budget.examined - examined, selection.row_count)
    return None


def _selection(
    reader: CollectionReader,
    query: DocumentQuery,
    plan: CandidatePlan,
    after: cursors.CursorPosition | None,
    page_bytes: int = PAGE_BYTES,
) -> Selection:
    selection = Selection(
        reader.filter,
        query.sort,
        offset=0 if after else query.offset,
        limit=query.limit,
        after=after.sort_position if after else None,
        now_ms=reader.now_ms,
        max_bytes=MAX_SORT_BYTES,
        page_bytes=page_bytes,
        projection=query.projection,
        ordered=plan.order in {"id", "time"},
        group=query.group,
        lookups=query.lookups,
        readable=reader.readable,
    )
    if plan.order == "index" and plan.index is not None:
        return selection.by_index(plan.index.fields, plan.bounds, plan.backward)
    return selection


class CandidateSink(Protocol):
    """Consumes candidate rows."""

    def feed(self, rows: Sequence[Row]) -> Literal["more", "enough", "misplaced"]:
        """Add candidates."""

    @property
    def held_bytes(self) -> int:
        """Bytes of the result that are held."""


async def feed(
    reader: CollectionReader,
    selection: CandidateSink,
    candidates: PlannedCandidates,
    budget: Budget,
) -> bool:
    """Read until the page is complete. False: the plan's order differs from the sort's."""
    examined = 0
    async for batch in candidates.batches:
        progress = native(partial(selection.feed, batch.rows))
        budget.spend(batch.examined)
        examined += batch.examined
        reader.allowance.check(selection.held_bytes)
        if progress == "misplaced":
            return False
        if progress == "enough":
            break
        if examined > reader.allowance.rows:
            raise LargeResult
        if reader.allowance.has_turn:
            await bulk_budget.tenants.wait(reader.collection.tenant_id)
    return True


class Budget:
    """The budget of one query."""

    def __init__(
        self,
        examined: float = MAX_EXAMINED,
        seconds: float | None = None,
        page_bytes: int = PAGE_BYTES,
    ) -> None:
        self._seconds = MAX_SECONDS if seconds is None else seconds
        self._deadline = time.monotonic() + self._seconds
        self._left = examined
        #: How many documents were read.
        self.examined = 0
        self.page_bytes = page_bytes

    @classmethod
    def unlimited(cls, page_bytes: int) -> Budget:
        """Return the budget of calls that read everything anyway, page by page."""
        return cls(math.inf, math.inf, page_bytes)

    def spend(self, rows: int) -> None:
        self._left -= rows
        self.examined += rows
        if self._left < 0:
            raise QueryTooExpensive(
                f"The query examined {MAX_EXAMINED} documents without completing."
            )
        if time.monotonic() > self._deadline:
            raise QueryTooExpensive(f"The query took {self._seconds:g} s without completing.")


async def count(
    tenant_id: UUID, name: str, query_filter: Filter, principal: Principal | None
) -> tuple[int, Notices]:
    """Return the number of matching documents, and the notices."""
    counted = await in_turn(tenant_id, partial(_count, tenant_id, name, query_filter, principal))
    if isinstance(counted, int):
        return counted, Notices()
    return counted.matched, notices_of(counted, tenant_id, name)


async def _count(
    tenant_id: UUID,
    name: str,
    query_filter: Filter,
    principal: Principal | None,
    allowance: ReadAllowance,
) -> int | Selection:
    async with opened(
        tenant_id, name, query_filter, principal, allowance=allowance, is_fixed=False
    ) as reader:
        if reader.filter.canonical() == Filter.parse(None).canonical():
            return await reader.snapshot.count_all(reader.collection)
        # A page of size zero holds at most one document, of any size.
        counter = replace(reader, allowance=replace(allowance, result_bytes=LARGE_BYTES))
        query = DocumentQuery(reader.filter, Sort.parse(None), limit=0)
        candidates = await reader.all_candidates()
        selection = _selection(reader, query, candidates.plan, None)
        await feed(counter, selection, candidates, Budget())
        return selection


@dataclass(frozen=True, slots=True)
class Bodies:
    """Documents in the order of their ids; `last`: more may follow after this position."""

    bodies: list[bytes]
    last: bytes | None
    notices: Notices


async def find(
    tenant_id: UUID,
    name: str,
    query_filter: Filter,
    principal: Principal | None,
    *,
    limit: int,
    after: bytes = b"",
    budget: Budget | None = None,
) -> Bodies:
    """Return the next matching documents, after the position `after`."""
    query = DocumentQuery(query_filter, Sort.parse(Value.parse(b"[]")), limit=limit)
    behind = cursors.CursorPosition(after, b"", after) if after else None

    async def read(allowance: ReadAllowance) -> Selection:
        async with opened(
            tenant_id, name, query_filter, principal, allowance=allowance, is_fixed=False
        ) as reader:
            selection, _ = await answer(reader, query, behind, budget)
            return selection

    selection = await in_turn(tenant_id, read)
    bodies, following = selection.bodies()
    return Bodies(bodies, following, notices_of(selection, tenant_id, name))


def native(call: Callable[[], T]) -> T:
    """Call the native code; raise its errors as errors of the API."""
    try:
        return call()
    except QueryError as error:
        raise as_api_error(error) from None
