"""A snapshot of collections in PostgreSQL: a transaction that reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from documents.outbox.entries import TransactionSnapshot
from documents.store import bodies
from documents.store.facts import CollectionFacts
from documents.store.planner import CandidatePlan, choose, has_more_than
from documents.store.reads import BY_KEY, CHECK, is_current, row
from documents.store.scan import (
    FIRST_BATCH,
    LARGEST_BATCH,
    LARGEST_BATCH_IF_CONTENDED,
    scan,
)
from documents.store.snapshot import (
    CandidateBatch,
    CandidateQuery,
    DocumentVersion,
    PlannedCandidates,
)
from documents.store.stored_document import StoredDocument
from foundation import bulk_budget
from foundation.postgres import Statement, StatementRunner
from foundation.postgres.arrays import byteas
from foundation.postgres.session import Oid, int8

SMALLEST_BATCH = 16

_COUNT_ALL = Statement(
    "SELECT count(*) FROM documents_document WHERE collection_id = $1 AND body IS NOT NULL",
    (Oid.UUID,),
)
_SNAPSHOT = Statement("SELECT pg_current_snapshot()::text")
_SIZE = Statement(
    "SELECT count(*), coalesce(sum(octet_length(body)), 0)::bigint FROM (SELECT body "
    "FROM documents_document WHERE collection_id = $1 AND body IS NOT NULL LIMIT $2) AS first",
    (Oid.UUID, Oid.INT8),
)
_ALL = Statement(
    "SELECT key, version, created_at, updated_at, body FROM documents_document "
    "WHERE collection_id = $1 AND body IS NOT NULL",
    (Oid.UUID,),
)
_VERSIONS = Statement(
    f"SELECT key, version, xmin::text::bigint, {bodies.carried('body', '$3')} "  # noqa: S608
    "FROM documents_document WHERE collection_id = $1 AND key = ANY($2)",
    (Oid.UUID, Oid.BYTEA_ARRAY, Oid.INT4),
)
#: The lowest regular transaction id, and the number of ids that a row can distinguish.
_FIRST_XID, _XIDS = 3, 1 << 32


@dataclass(frozen=True, slots=True)
class PostgresSnapshot:
    """A transaction whose statements see one state."""

    session: StatementRunner

    async def candidates(
        self, collection: CollectionFacts, request: CandidateQuery
    ) -> PlannedCandidates:
        plan = await choose(
            self.session,
            collection,
            request.filter,
            request.sort,
            n_rows=request.rows,
            in_order=request.in_order and not request.needs_all,
            needs_all=request.needs_all,
        )
        if request.needs_all:
            plan = replace(plan, order="any")
        return PlannedCandidates(plan, self._batches(collection, plan, request))

    async def _batches(
        self, collection: CollectionFacts, plan: CandidatePlan, request: CandidateQuery
    ) -> AsyncIterator[CandidateBatch]:
        resume = None
        if request.after is not None and plan.order != "any":
            resume = request.after.resume(plan.ordering_index)
        first_batch = min(_first_batch(plan, request.rows + 1), request.first_batch)
        scanned = scan(
            self.session,
            collection,
            plan,
            resume,
            first_batch=first_batch,
            largest_batch=largest_batch,
        )
        async for rows in scanned:
            yield CandidateBatch(rows, len(rows))

    async def has_more_than(self, collection: CollectionFacts, documents: int) -> bool:
        return await has_more_than(self.session, collection, documents)

    async def count_all(self, collection: CollectionFacts) -> int:
        (result,) = await self.session.run([(_COUNT_ALL, (collection.id.bytes,))])
        return result.integer(0, 0)

    async def are_current(self, collections: Sequence[CollectionFacts]) -> bool:
        checks = await self.session.run(
            [(CHECK, (collection.id.bytes,)) for collection in collections]
        )
        return all(map(is_current, checks, collections))

    async def documents(
        self,
        collection: CollectionFacts,
        keys: Sequence[bytes],
        reserve: Callable[[int], None],
    ) -> AsyncIterator[list[StoredDocument]]:
        parameters = (byteas(keys), bodies.largest_carried(len(keys)))
        (result,) = await self.session.run([(BY_KEY, (collection.id.bytes, *parameters))])
        documents = [row(result, number) for number in range(result.rows)]
        reserve(sum(bodies.size_bytes(one.body) for one in documents))
        cells = [(one.key, one.body) for one in documents]
        async for part, omitted in bodies.read_omitted(self.session, collection.raw, cells):
            yield [
                replace(one, body=omitted[one.key]) if one.key in omitted else one
                for one in documents[part]
            ]

    async def transactions(self) -> TransactionSnapshot:
        (result,) = await self.session.run([(_SNAPSHOT, ())])
        return TransactionSnapshot.parse(result.text(0, 0))

    async def versions(
        self, collection: CollectionFacts, keys: Sequence[bytes]
    ) -> AsyncIterator[list[DocumentVersion]]:
        parameters = (byteas(keys), bodies.largest_carried(len(keys)))
        snapshot, result = await self.session.run(
            [(_SNAPSHOT, ()), (_VERSIONS, (collection.id.bytes, *parameters))]
        )
        xmax = TransactionSnapshot.parse(snapshot.text(0, 0)).xmax
        stored: dict[bytes, DocumentVersion] = {}
        for number in range(result.rows):
            key, version = result.bytes(number, 0), result.integer(number, 1)
            xid = full_xid(result.integer(number, 2), xmax)
            stored[key] = DocumentVersion(key, version, xid, result.raw(number, 3))
        versions = [stored.get(key) or DocumentVersion(key, 0, 0, None) for key in keys]
        cells = [(one.key, one.body or b"") for one in versions]
        async for part, omitted in bodies.read_omitted(self.session, collection.raw, cells):
            yield [
                replace(one, body=omitted[one.key]) if one.key in omitted else one
                for one in versions[part]
            ]

    async def all_documents(
        self, collection: CollectionFacts, *, max_documents: int, max_bytes: int
    ) -> list[StoredDocument] | None:
        parameters = (collection.id.bytes, int8(max_documents + 1))
        (size,) = await self.session.run([(_SIZE, parameters)])
        if size.integer(0, 0) > max_documents or size.integer(0, 1) > max_bytes:
            return None
        (result,) = await self.session.run([(_ALL, (collection.id.bytes,))])
        return [row(result, number) for number in range(result.rows)]


def full_xid(xid: int, xmax: int) -> int:
    """Return the transaction below `xmax` whose lower half is in a row; 0: too long ago."""
    full = xmax - xmax % _XIDS + xid
    if full >= xmax:
        full -= _XIDS
    return full if xid >= _FIRST_XID and full > 0 else 0


def largest_batch() -> int:
    """Rows that hold the event loop for milliseconds, unless other tenants are active."""
    is_contended = bulk_budget.tenants.contention.is_contended
    return LARGEST_BATCH_IF_CONTENDED if is_contended else LARGEST_BATCH


def _first_batch(plan: CandidatePlan, n_rows: int) -> int:
    """Rows in order are read until the page is complete; rows to be sorted are all read."""
    if plan.order == "any":
        return min((plan.estimate or FIRST_BATCH) + 1, LARGEST_BATCH)
    return min(max(n_rows, SMALLEST_BATCH), FIRST_BATCH)
