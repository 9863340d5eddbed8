"""The rows of a live query, and the snapshot that they were read in.

Both come from one transaction: the rows contain exactly what the snapshot sees. They are read like
those of any query, with the planner and the native matcher.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from documents.outbox.entries import TransactionSnapshot
from documents.store.facts import CollectionFacts
from documents.store.large_results import LARGE_BYTES, SMALL_BYTES, LargeResult
from documents.store.lookups import LookupCollection, read_sides, read_small
from documents.store.queries import Budget, CollectionReader, DocumentQuery, answer, native, opened
from documents.store.reads import KeptChanging
from foundation import bulk_budget
from foundation.errors import ResultTooLarge
from foundation.postgres import Statement, StatementResult, StatementRunner
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

_SNAPSHOT = Statement("SELECT pg_current_snapshot()::text")


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
    #: The query, if it looks others up, and the collections in which it does.
    looks_up: LiveQuery | None = None
    sides: Sequence[LookupCollection] = ()

    @property
    def most(self) -> int:
        if self.first is not None:
            return self.first
        return MAX_WINDOW if self.has_window else MAX_ROWS


async def read_all(
    tenant_id: UUID, name: str, wanted: Sequence[tuple[Filter, InitialRead]], max_held_bytes: int
) -> list[InitialRows]:
    """Read the rows of several queries of one collection, all in one snapshot.

    Later queries are left out if the first ones reach the limit of rows or bytes. Raises
    `LargeResult` if the first one alone has more bytes. Queries whose rows are few share round
    trips; the others are read one after the other.
    """
    no_principal: Principal | None = None
    async with opened(
        tenant_id, name, wanted[0][0], no_principal, max_held_bytes=max_held_bytes
    ) as reading:
        snapshot = await take_snapshot(reading.session)
        read = list[InitialRows]()
        n_rows = n_bytes = 0
        for begin in range(0, len(wanted), TOGETHER):
            several = wanted[begin : begin + TOGETHER]
            for one, early in zip(several, await _few(reading, several), strict=True):
                try:
                    result = await _read(reading, *one) if early is None else early
                except LargeResult:
                    if read:
                        return read
                    raise
                read.append(InitialRows(reading.collection, snapshot, *result))
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


async def _few(
    reading: CollectionReader, wanted: Sequence[tuple[Filter, InitialRead]]
) -> list[QueryRows | None]:
    """Read queries concurrently; None for each that has more than a few rows."""
    if len(wanted) == 1:
        return [None]
    trips = SharedTrips(reading.session)
    tenant = reading.collection.tenant_id

    def reader(
        one: tuple[Filter, InitialRead],
    ) -> Callable[[StatementRunner], Awaitable[QueryRows]]:
        async def read(session: StatementRunner) -> QueryRows:
            few = replace(
                reading,
                session=_SmallQuerySession(session),
                max_held_bytes=FEW_BYTES,
                first_batch_rows=FEW_ROWS + 1,
            )
            return await bulk_budget.subscription_starts.metered(tenant, _read(few, *one))

        return read

    results = list[QueryRows | None]()
    for outcome in await trips.gather([reader(one) for one in wanted]):
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


async def _read(reading: CollectionReader, condition: Filter, extent: InitialRead) -> QueryRows:
    query = DocumentQuery(
        condition,
        extent.sort,
        limit=extent.most,
        group=extent.group,
        lookups=None if extent.looks_up is None else extent.looks_up.lookups(),
    )
    own = replace(reading, filter=condition, readable=extent.readable)
    # All rows are needed: a result that does not fit is rejected.
    selection = await answer(own, query, budget=Budget(page_bytes=LARGE_BYTES))
    rows, more = selection.rows()
    if more and extent.group is not None:
        raise ResultTooLarge(f"A live query may group at most {extent.most} documents.")
    if more and len(rows) < extent.most:
        raise ResultTooLarge(f"The rows are larger than {LARGE_BYTES} bytes.")
    if more and extent.first is None:
        raise ResultTooLarge(f"There are more than {extent.most} rows.")
    foreign = await _read_foreign(reading, extent, rows)
    unevaluated, _ = selection.unevaluated
    return rows, not more, unevaluated, foreign


async def _read_foreign(
    reading: CollectionReader, extent: InitialRead, rows: list[Row]
) -> list[ForeignRows]:
    """Read referenced documents, or all documents of a small collection."""
    if extent.looks_up is None:
        return []
    keys = native(partial(extent.looks_up.references, rows))
    now_ms = int(time.time() * 1000)
    session = reading.session
    referred = await read_sides(session, extent.sides, keys, now_ms, reading.max_held_bytes)
    if referred is None:
        raise KeptChanging
    foreign: list[ForeignRows] = []
    for side, referenced in zip(extent.sides, referred, strict=True):
        everything = await read_small(session, side, now_ms)
        documents = referenced if everything is None else everything
        listed = [(d.key, d.version, d.created_ms, d.updated_ms, d.body) for d in documents]
        foreign.append((listed, everything is not None))
    return foreign


async def take_snapshot(session: StatementRunner) -> TransactionSnapshot:
    """Return the snapshot of the session's transaction."""
    (result,) = await session.run([(_SNAPSHOT, ())])
    return TransactionSnapshot.parse(result.text(0, 0))
