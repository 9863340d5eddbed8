"""A snapshot of collections in the storage node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import cast
from uuid import UUID

from documents.outbox.entries import TransactionSnapshot
from documents.store.bodies import ROUND_TRIP_BYTES
from documents.store.facts import CollectionFacts
from documents.store.node.definitions import call, node_name
from documents.store.planner import EVERYTHING, CandidateOrder, CandidatePlan
from documents.store.scan import LARGEST_BATCH, LARGEST_BATCH_IF_CONTENDED
from documents.store.snapshot import (
    CandidateBatch,
    CandidateQuery,
    DocumentVersion,
    PlannedCandidates,
)
from documents.store.stored_document import StoredDocument
from foundation import bulk_budget
from foundation.resp_pipeline import Argument
from rillbase_native import Filter, Sort, candidate_rows, document_versions
from storage_engine.node.client import client
from storage_engine.node.publication import member, number
from storage_engine.node.wire import Reply

#: The smallest batch, and the largest first one.
SMALLEST_BATCH, FIRST_BATCH = 16, 256
#: Documents that one command reads by their keys.
KEYS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class _ReplyPart:
    """A part of a query's candidates."""

    batch: CandidateBatch
    #: The words that request the next part; none: this is the last one.
    following: tuple[Argument, ...]


@asynccontextmanager
async def node_snapshot(tenant_id: UUID, *, is_fixed: bool) -> AsyncIterator[NodeSnapshot]:
    """Open a snapshot. `is_fixed` False: there is only one read, of the newest state."""
    if not is_fixed:
        yield NodeSnapshot()
        return
    opened = await client().call(tenant_id, "RB.SNAPSHOT.OPEN", "SEQUENCE")
    name, sequence = cast("tuple[bytes, int]", opened)
    try:
        yield NodeSnapshot(("AT", name), sequence)
    finally:
        await client().call(tenant_id, "RB.SNAPSHOT.CLOSE", name)


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """One state of the node's collections."""

    #: The words that name it in commands; none: the newest, which a single read sees.
    words: tuple[Argument, ...] = ()
    #: The last write that it sees, unless it is the newest state.
    sequence: int | None = None

    async def candidates(
        self, collection: CollectionFacts, request: CandidateQuery
    ) -> PlannedCandidates:
        words: list[Argument] = [
            "RB.COL.QUERY",
            node_name(collection),
            collection.write_version,
            request.filter.canonical(),
            _sort(request),
            *("NOW", request.now_ms, "BYTES", ROUND_TRIP_BYTES, "DOCUMENTS", request.rows),
        ]
        if request.needs_all or not request.in_order:
            words.append("UNORDERED")
        first_batch = min(max(request.rows + 1, SMALLEST_BATCH), FIRST_BATCH)
        if request.only_plan:
            first_batch = 0
        options: tuple[Argument, ...] = ("COUNT", first_batch, *self.words)
        if request.after is not None:
            after = request.after
            options = (*options, "AFTER", after.index, after.entry, after.key)
        reply = await call([collection], *words, *options)
        plan = _plan(collection, reply, request)
        part = _reply_part(reply)
        if request.only_plan:
            plan_bytes = cast("bytes", member(reply, b"plan"))
            part = replace(part, following=("PLAN", plan_bytes, *self.words))
        return PlannedCandidates(plan, _batches(collection, tuple(words), part))

    async def has_more_than(self, collection: CollectionFacts, documents: int) -> bool:
        return await self.count_all(collection) > documents

    async def count_all(self, collection: CollectionFacts) -> int:
        reply = await call([collection], "RB.COL.INFO", node_name(collection), *self.words)
        return number(reply, b"documents")

    async def are_current(self, collections: Sequence[CollectionFacts]) -> bool:
        """Every read carries the version of its collection's definition."""
        return True

    async def documents(
        self,
        collection: CollectionFacts,
        keys: Sequence[bytes],
        reserve: Callable[[int], None],
    ) -> AsyncIterator[list[StoredDocument]]:
        head = ("RB.COL.GET", node_name(collection), collection.write_version)
        size, position = 0, 0
        while position < len(keys):
            some = keys[position : position + KEYS_AT_ONCE]
            reply = await call([collection], *head, *self.words, *some)
            rows, count = cast("tuple[bytes, int]", reply)
            size += len(rows)
            reserve(size)
            position += count
            yield [StoredDocument(*row[:5]) for row in candidate_rows(rows)]

    async def transactions(self) -> TransactionSnapshot:
        if self.sequence is None:
            raise TypeError("the newest state changes between reads")
        return TransactionSnapshot.up_to(self.sequence)

    async def versions(
        self, collection: CollectionFacts, keys: Sequence[bytes]
    ) -> AsyncIterator[list[DocumentVersion]]:
        head = ("RB.COL.VERSIONS", node_name(collection), collection.write_version)
        position = 0
        while position < len(keys):
            reply = await call([collection], *head, *self.words, *keys[position:])
            rows, count = cast("tuple[bytes, int]", reply)
            some = keys[position : position + count]
            position += count
            yield [
                DocumentVersion(key, *version)
                for key, version in zip(some, document_versions(rows), strict=True)
            ]

    async def all_documents(
        self, collection: CollectionFacts, *, max_documents: int, max_bytes: int
    ) -> list[StoredDocument] | None:
        reply = await call([collection], "RB.COL.INFO", node_name(collection), *self.words)
        if number(reply, b"documents") > max_documents or number(reply, b"bytes") > max_bytes:
            return None
        everything = CandidateQuery(
            Filter.parse(None), Sort.parse(None), max_documents, now_ms=0, needs_all=True
        )
        planned = await self.candidates(collection, everything)
        return [StoredDocument(*row[:5]) async for batch in planned.batches for row in batch.rows]


async def _batches(
    collection: CollectionFacts, words: tuple[Argument, ...], page: _ReplyPart
) -> AsyncIterator[CandidateBatch]:
    yield page.batch
    while page.following:
        is_contended = bulk_budget.tenants.contention.is_contended
        count = LARGEST_BATCH_IF_CONTENDED if is_contended else LARGEST_BATCH
        page = _reply_part(await call([collection], *words, "COUNT", count, *page.following))
        yield page.batch


def _reply_part(reply: Reply) -> _ReplyPart:
    rows = candidate_rows(cast("bytes", member(reply, b"rows")))
    batch = CandidateBatch(rows, number(reply, b"examined"))
    after = cast("list[Argument] | None", member(reply, b"after"))
    if after is None:
        return _ReplyPart(batch, ())
    plan, snapshot = (cast("bytes", member(reply, name)) for name in (b"plan", b"snapshot"))
    return _ReplyPart(batch, ("PLAN", plan, "AFTER", *after, "AT", snapshot))


def _sort(request: CandidateQuery) -> str:
    """Return the sort as the node reads it. Distances have no form of their own."""
    sort = request.sort.canonical()
    is_default = sort == Sort.parse(None, request.filter).canonical()
    return "null" if is_default else sort


def _plan(collection: CollectionFacts, reply: Reply, request: CandidateQuery) -> CandidatePlan:
    """Describe the node's plan as one of ours."""
    index_number = number(reply, b"index")
    index = next((one for one in collection.indexes if one.number == index_number), None)
    bounds = None if index is None else request.filter.bounds(index.fields)
    by_id = request.filter.id_bounds() if index is None else None
    ranges = by_id if bounds is None else bounds.ranges
    order = cast("bytes", member(reply, b"order")).decode()
    entries = member(reply, b"entries")
    return CandidatePlan(
        index,
        EVERYTHING if ranges is None else ranges,
        "any" if request.needs_all else cast("CandidateOrder", order),
        bounds,
        backward=bool(number(reply, b"backward")),
        estimate=entries if isinstance(entries, int) else None,
    )
