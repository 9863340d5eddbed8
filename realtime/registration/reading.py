"""The rows of a live query, and the snapshot that they were read in.

Both come from one transaction: whatever the snapshot sees is in the rows, and nothing else. The
rows are found as those of any query are, by the planner and the native matcher.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from documents.outbox.entries import Snapshot
from documents.store.facts import CollectionFacts
from documents.store.lookups import Side, read_sides, read_small
from documents.store.queries import Query, Reading, answer, native, opened
from documents.store.reads import KeptChanging
from foundation.errors import ResultTooLarge
from foundation.postgres import Session, Statement
from realtime.registration.wanted import MAX_WINDOW
from rillbase_native import Filter, Group, LiveQuery, Sort
from tenants.principals import Principal

#: Rows of a result without a window.
MAX_ROWS = 100_000

#: Key, version, created and updated in milliseconds, BSON.
Row = tuple[bytes, int, int, int, bytes]
#: Rows, and whether nothing else of the collection may be seen.
Foreign = tuple[list[Row], bool]

_SNAPSHOT = Statement("SELECT pg_current_snapshot()::text")


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query's result was at one moment."""

    collection: CollectionFacts
    snapshot: Snapshot
    rows: list[Row]
    #: Whether there are no more than these.
    complete: bool
    #: What the same snapshot has of each collection that the query looks up.
    foreign: list[Foreign] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Extent:
    """Which rows of a result are read."""

    sort: Sort
    #: Offset, limit and slack together; None: all, as many as may be watched.
    first: int | None
    has_window: bool
    #: How the documents are grouped: all are read, and of each no more than groups need.
    group: Group | None = None
    #: The query, if it looks others up, and the collections in which it does.
    looks_up: LiveQuery | None = None
    sides: Sequence[Side] = ()

    @property
    def most(self) -> int:
        if self.first is not None:
            return self.first
        return MAX_WINDOW if self.has_window else MAX_ROWS


async def read_all(
    tenant_id: UUID, name: str, wanted: Sequence[tuple[Filter, Extent]]
) -> list[Rows]:
    """Read the rows of several queries of one collection, all in one snapshot.

    Not of all of them, when the first ones have as many rows as one query may have.
    """
    read: list[Rows] = []
    nobody: Principal | None = None
    async with opened(tenant_id, name, wanted[0][0], nobody) as reading:
        snapshot = await take_snapshot(reading.session)
        for condition, extent in wanted:
            read.append(await _read(replace(reading, filter=condition), snapshot, extent))
            if sum(len(rows.rows) for rows in read) >= MAX_ROWS:
                break
    return read


async def _read(reading: Reading, snapshot: Snapshot, extent: Extent) -> Rows:
    asked = Query(reading.filter, extent.sort, limit=extent.most, group=extent.group)
    selection = await answer(reading, asked)
    rows, more = selection.rows()
    if more and extent.group is not None:
        raise ResultTooLarge(f"A live query groups at most {extent.most} documents.")
    if more and extent.first is None:
        raise ResultTooLarge(f"There are more than {extent.most} rows.")
    foreign = await _read_foreign(reading.session, extent, rows)
    return Rows(reading.collection, snapshot, rows, complete=not more, foreign=foreign)


async def _read_foreign(session: Session, extent: Extent, rows: list[Row]) -> list[Foreign]:
    """Read what documents refer to, and all of a collection that is small."""
    if extent.looks_up is None:
        return []
    keys = native(partial(extent.looks_up.references, rows))
    now_ms = int(time.time() * 1000)
    referred = await read_sides(session, extent.sides, keys, now_ms)
    if referred is None:
        raise KeptChanging
    foreign: list[Foreign] = []
    for side, found in zip(extent.sides, referred, strict=True):
        everything = await read_small(session, side, now_ms)
        documents = found if everything is None else everything
        listed = [(d.key, d.version, d.created_ms, d.updated_ms, d.body) for d in documents]
        foreign.append((listed, everything is not None))
    return foreign


async def take_snapshot(session: Session) -> Snapshot:
    """Return what the session's transaction sees."""
    (result,) = await session.run([(_SNAPSHOT, ())])
    return Snapshot.parse(result.text(0, 0))
