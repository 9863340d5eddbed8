"""A snapshot of collections in PostgreSQL: a transaction that reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from documents.store import bodies
from documents.store.facts import CollectionFacts
from documents.store.planner import CandidatePlan, choose
from documents.store.reads import BY_KEY, CHECK, is_current, row
from documents.store.scan import (
    FIRST_BATCH,
    LARGEST_BATCH,
    LARGEST_BATCH_IF_CONTENDED,
    scan,
)
from documents.store.snapshot import CandidateBatch, CandidateQuery, PlannedCandidates
from documents.store.stored_document import StoredDocument
from foundation import bulk_budget
from foundation.postgres import Statement, StatementRunner
from foundation.postgres.arrays import byteas
from foundation.postgres.session import Oid

SMALLEST_BATCH = 16

_COUNT_ALL = Statement(
    "SELECT count(*) FROM documents_document WHERE collection_id = $1 AND body IS NOT NULL",
    (Oid.UUID,),
)


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
        )
        if request.needs_all:
            plan = replace(plan, order="any")
        return PlannedCandidates(plan, self._batches(collection, plan, request))

    async def _batches(
        self, collection: CollectionFacts, plan: CandidatePlan, request: CandidateQuery
    ) -> AsyncIterator[CandidateBatch]:
        resume = None
        if request.after is not None and plan.order != "any":
            resume = request.after.resume(by_index=plan.order == "index")
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


def largest_batch() -> int:
    """Rows that hold the event loop for milliseconds, unless other tenants are active."""
    is_contended = bulk_budget.tenants.contention.is_contended
    return LARGEST_BATCH_IF_CONTENDED if is_contended else LARGEST_BATCH


def _first_batch(plan: CandidatePlan, n_rows: int) -> int:
    """Rows in order are read until the page is complete; rows to be sorted are all read."""
    if plan.order == "any":
        return min((plan.estimate or FIRST_BATCH) + 1, LARGEST_BATCH)
    return min(max(n_rows, SMALLEST_BATCH), FIRST_BATCH)
