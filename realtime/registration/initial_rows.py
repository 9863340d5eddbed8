"""The rows of a live query, and the snapshot that they were read in.

Both come from one transaction: the rows contain exactly what the snapshot sees. They are read like
those of any query, with the planner and the native matcher.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from documents.outbox.entries import TransactionSnapshot
from documents.store.facts import CollectionFacts, ConcurrentDefinitionChange
from documents.store.large_results import LARGE_BYTES, SMALL_BYTES, LargeResult, ReadAllowance
from documents.store.lookups import LookupCollection, read_sides, read_small
from documents.store.postgres_snapshot import PostgresSnapshot
from documents.store.queries import Budget, CollectionReader, DocumentQuery, answer, native, opened
from foundation import bulk_budget
from foundation.errors import ResultTooLarge
from foundation.postgres import StatementResult, StatementRunner
from foundation.postgres.session import Step
from foundation.postgres.shared_trips import SharedTrips
from realtime.registration.subscribe_request import MAX_WINDOW
from rillbase_native import Filter, Group, LiveQuery, Sort
from tenants.principals import Principal

#: Rows of a result without a window.
MAX_ROWS = 100_000

#: Key, version, created and updated in milliseconds, BSON.
Row = tuple[bytes, int, int, int, bytes]
#: Rows, and whether they are all readable documents of the collection.
ForeignRows = tuple[list[Row], bool]
#: Rows, whether they are complete, the number of omitted documents, and the documents that they
#: refer to.
QueryRows = tuple[list[Row], bool, int, list[ForeignRows]]
#: Queries that share round trips, and rows and bytes beyond which one does not.
TOGETHER, FEW_ROWS, FEW_BYTES = 8, 128, 128 * 1024


@dataclass(frozen=True, slots=True)
class InitialRows:
    """The result of a query in one snapshot."""

    collection: CollectionFacts
    snapshot: TransactionSnapshot
    rows: list[Row]
    #: Whether these are all rows.
    complete: bool
    #: Number of documents that are omitted because they cannot be evaluated.
    unevaluated: int
    #: The looked-up documents of each collection in the same snapshot.
    foreign: list[ForeignRows] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class InitialRead:
    """The part of a result that is read."""

    sort: Sort
    #: Offset, limit and slack together; None: all, up to the limit for live queries.
    first: int | None
    has_window: bool
    #: The grouping: all documents are read, but only the fields that groups need.
    group: Group | None = None
    #: The subscribers' read filter, which is part of the filter; None: everything.
    readable: Filter | None = None
    #: The query, if it has lookups, and the collections of the lookups.
    lookup_query: LiveQuery | None = None
    sides: Sequence[LookupCollection] = ()

    @property
    def max_rows(self) -> int:
        if self.first is not None:
            return self.first
        return MAX_WINDOW if self.has_window else MAX_ROWS


async def read_all(
    tenant_id: UUID,
    name: str,
    reads: Sequence[tuple[Filter, InitialRead]],
    allowance: ReadAllowance,
) -> list[InitialRows]:
    """Read the rows of several queries of one collection, all in one snapshot.

    Later queries are left out if the first ones reach the limit of rows or bytes. Raises
    `LargeResult` if the first one alone has more bytes. Queries whose rows are few share round
    trips; the others are read one after the other.
    """
    no_principal: Principal | None = None
    async with opened(tenant_id, name, reads[0][0], no_principal, allowance=allowance) as reader:
        snapshot = await reader.snapshot.transactions()
        read = list[InitialRows]()
        n_rows = n_bytes = 0
        for begin in range(0, len(reads), TOGETHER):
            batch = reads[begin : begin + TOGETHER]
            for request, small_result in zip(
                batch, await _read_small_results(reader, batch), strict=True
            ):
                try:
                    result = await _read(reader, *request) if small_result is None else small_result
                except LargeResult:
                    if read:
                        return read
                    raise
                read.append(InitialRows(reader.collection, snapshot, *result))
                n_rows += len(result[0])
                n_bytes += _size_bytes(result)
                if n_rows >= MAX_ROWS or n_bytes >= SMALL_BYTES:
                    return read
    return read


def _size_bytes(result: QueryRows) -> int:
    rows, _, _, foreign = result
    return sum(len(row[4]) for row in rows) + sum(
        len(row[4]) for looked_up, _ in foreign for row in looked_up
    )


async def _read_small_results(
    reader: CollectionReader, reads: Sequence[tuple[Filter, InitialRead]]
) -> list[QueryRows | None]:
    """Read queries concurrently; None for each that has more than a few rows. Only statements of
    PostgreSQL share round trips.
    """
    if len(reads) == 1 or not isinstance(reader.snapshot, PostgresSnapshot):
        return [None] * len(reads)
    trips = SharedTrips(reader.snapshot.session)
    tenant = reader.collection.tenant_id

    def small_read(
        request: tuple[Filter, InitialRead],
    ) -> Callable[[StatementRunner], Awaitable[QueryRows]]:
        async def read(session: StatementRunner) -> QueryRows:
            small_reader = replace(
                reader,
                snapshot=PostgresSnapshot(_SmallQuerySession(session)),
                allowance=replace(reader.allowance, result_bytes=FEW_BYTES),
                first_batch_rows=FEW_ROWS + 1,
            )
            return await bulk_budget.subscription_starts.metered(
                tenant, _read(small_reader, *request)
            )

        return read

    results = list[QueryRows | None]()
    for outcome in await trips.gather([small_read(request) for request in reads]):
        if isinstance(outcome, BaseException) and not isinstance(
            outcome, (_TooManyRows, LargeResult)
        ):
            raise outcome
        results.append(None if isinstance(outcome, BaseException) else outcome)
    return results


class _TooManyRows(Exception):
    """A query has too many rows to be read concurrently with others."""


class _SmallQuerySession:
    """A session for a query that is expected to have few rows."""

    def __init__(self, session: StatementRunner) -> None:
        self._session = session
        self._rows = 0

    async def run(self, steps: Sequence[Step]) -> list[StatementResult]:
        if self._rows > FEW_ROWS:
            raise _TooManyRows
        results = await self._session.run(steps)
        self._rows += sum(result.rows for result in results)
        return results


async def _read(reader: CollectionReader, condition: Filter, extent: InitialRead) -> QueryRows:
    query = DocumentQuery(
        condition,
        extent.sort,
        limit=extent.max_rows,
        group=extent.group,
        lookups=None if extent.lookup_query is None else extent.lookup_query.lookups(),
    )
    own = replace(reader, filter=condition, readable=extent.readable)
    # All rows are needed: a result that does not fit is rejected.
    selection, _ = await answer(own, query, budget=Budget(page_bytes=LARGE_BYTES))
    rows, more = selection.rows()
    if more and extent.group is not None:
        raise ResultTooLarge(f"A live query may group at most {extent.max_rows} documents.")
    if more and len(rows) < extent.max_rows:
        raise ResultTooLarge(f"The rows are larger than {LARGE_BYTES} bytes.")
    if more and extent.first is None:
        raise ResultTooLarge(f"There are more than {extent.max_rows} rows.")
    foreign = await _read_foreign(reader, extent, rows)
    unevaluated, _ = selection.unevaluated
    return rows, not more, unevaluated, foreign


async def _read_foreign(
    reader: CollectionReader, extent: InitialRead, rows: list[Row]
) -> list[ForeignRows]:
    """Read referenced documents, or all documents of a small collection."""
    if extent.lookup_query is None:
        return []
    keys = native(partial(extent.lookup_query.references, rows))
    now_ms = reader.now_ms
    referred = await read_sides(reader.snapshot, extent.sides, keys, now_ms, reader.allowance)
    if referred is None:
        raise ConcurrentDefinitionChange
    foreign: list[ForeignRows] = []
    for side, referenced in zip(extent.sides, referred, strict=True):
        everything = await read_small(reader.snapshot, side, now_ms)
        documents = referenced if everything is None else everything
        listed = [(d.key, d.version, d.created_ms, d.updated_ms, d.body) for d in documents]
        foreign.append((listed, everything is not None))
    return foreign
