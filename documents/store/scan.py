"""Reads the rows of a plan in batches, each starting after the last row of the previous one.

A batch is bounded in rows and in bytes: large bodies are read separately.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from struct import Struct

from documents.store import bodies
from documents.store.facts import CollectionFacts
from documents.store.keys import BEHIND_ALL
from documents.store.planner import CandidatePlan, Range
from foundation.postgres import Statement, StatementResult, StatementRunner
from foundation.postgres.arrays import byteas
from foundation.postgres.session import EPOCH_2000_US, Oid, Parameter, Step, int8

#: The first batch is small, since most queries want little; later ones grow.
FIRST_BATCH, LARGEST_BATCH, LARGEST_BATCH_IF_CONTENDED = 128, 2_048, 256
#: The first batches of this many ranges travel in one round trip.
TOGETHER = 8

#: Key, version, created and updated in milliseconds, body, index entry.
Row = tuple[bytes, int, int, int, bytes, bytes | None]
#: Version, and when it was created and updated.
_NUMBERS = Struct("!qqq").unpack

_DOCUMENTS = Statement(
    f"SELECT key, version, created_at, updated_at, {bodies.carried('body', '$6')} "  # noqa: S608
    "FROM documents_document "
    "WHERE collection_id = $1 AND key >= $2 AND key < $3 AND key > $4 "
    "AND body IS NOT NULL ORDER BY key LIMIT $5",
    (Oid.UUID, Oid.BYTEA, Oid.BYTEA, Oid.BYTEA, Oid.INT8, Oid.INT4),
)
#: Documents are fetched one by one for the entries of an index range, in order. The start is a
#: single row comparison without another lower bound: with an additional `key >= low`, PostgreSQL
#: descends to whichever comes first, which may be the beginning of the index.
_FORWARD = Statement(
    "SELECT e.document_key, d.version, d.created_at, d.updated_at, "  # noqa: S608
    f"{bodies.carried('d.body', '$7')}, e.key FROM ("
    "SELECT key, document_key FROM documents_indexentry WHERE index_number = $2 "
    "AND (key, document_key) > ($3, $4) AND key < $5 "
    "ORDER BY key, document_key LIMIT $6) e "
    "JOIN LATERAL (SELECT version, created_at, updated_at, body FROM documents_document "
    "WHERE collection_id = $1 AND key = e.document_key AND body IS NOT NULL OFFSET 0) d ON true "
    "ORDER BY e.key, e.document_key",
    (Oid.UUID, Oid.INT8, Oid.BYTEA, Oid.BYTEA, Oid.BYTEA, Oid.INT8, Oid.INT4),
)
#: Backwards by key, and forwards by document among equal keys: `_id` is ascending in every sort.
_BACKWARD = Statement(
    "SELECT e.document_key, d.version, d.created_at, d.updated_at, "  # noqa: S608
    f"{bodies.carried('d.body', '$8')}, e.key FROM ("
    "SELECT key, document_key FROM documents_indexentry WHERE index_number = $2 "
    "AND key >= $3 AND key < $4 "
    "AND key <= $5 AND (key < $5 OR document_key > $6) "
    "ORDER BY key DESC, document_key LIMIT $7) e "
    "JOIN LATERAL (SELECT version, created_at, updated_at, body FROM documents_document "
    "WHERE collection_id = $1 AND key = e.document_key AND body IS NOT NULL OFFSET 0) d ON true "
    "ORDER BY e.key DESC, e.document_key",
    (Oid.UUID, Oid.INT8, Oid.BYTEA, Oid.BYTEA, Oid.BYTEA, Oid.BYTEA, Oid.INT8, Oid.INT4),
)
#: The documents of all ranges, in any order, if there are few.
_FEW = Statement(
    "SELECT e.document_key, d.version, d.created_at, d.updated_at, "  # noqa: S608
    f"{bodies.carried('d.body', '$6')}, e.key "
    "FROM unnest($3::bytea[], $4::bytea[]) AS r(low, high) "
    "CROSS JOIN LATERAL (SELECT key, document_key FROM documents_indexentry "
    "WHERE index_number = $2 AND key >= r.low AND key < r.high LIMIT $5) e "
    "JOIN LATERAL (SELECT version, created_at, updated_at, body FROM documents_document "
    "WHERE collection_id = $1 AND key = e.document_key AND body IS NOT NULL OFFSET 0) d ON true",
    (Oid.UUID, Oid.INT8, Oid.BYTEA_ARRAY, Oid.BYTEA_ARRAY, Oid.INT8, Oid.INT4),
)


@dataclass(frozen=True, slots=True)
class Position:
    """Where to resume reading an index: after this entry of this document."""

    entry: bytes
    document_key: bytes


async def scan(
    session: StatementRunner,
    collection: CollectionFacts,
    plan: CandidatePlan,
    resume: Position | None = None,
    *,
    first_batch: int = FIRST_BATCH,
    largest_batch: Callable[[], int] = lambda: LARGEST_BATCH,
) -> AsyncIterator[list[Row]]:
    """Yield batches of the plan's rows. The caller stops iterating when the query is complete."""
    entries = plan.estimate or 0
    is_read_together = plan.order == "any" and plan.has_few_entries and entries < first_batch
    if plan.index is not None and is_read_together:
        (result,) = await session.run([_few(collection, plan, plan.index.number)])
        rows = _rows(result, plan)
        size = largest_batch()
        for start in range(0, len(rows), size):
            async for part in _complete(session, collection, rows[start : start + size]):
                yield part
        return
    ranges = list(reversed(plan.ranges)) if plan.backward else list(plan.ranges)
    for start in range(0, len(ranges), TOGETHER):
        some = ranges[start : start + TOGETHER]
        largest = bodies.largest_carried(first_batch * len(some))
        steps = [_step(collection, plan, bounds, resume, first_batch, largest) for bounds in some]
        for bounds, result in zip(some, await session.run(steps), strict=True):
            rows = _rows(result, plan)
            async for part in _complete(session, collection, rows):
                yield part
            if len(rows) == first_batch:
                remaining = _remaining(session, collection, plan, bounds, rows[-1], largest_batch)
                async for more in remaining:
                    yield more


async def _remaining(
    session: StatementRunner,
    collection: CollectionFacts,
    plan: CandidatePlan,
    bounds: Range,
    last: Row,
    largest_batch: Callable[[], int],
) -> AsyncIterator[list[Row]]:
    """Yield what follows the first batch of a range."""
    size = FIRST_BATCH
    while True:
        size = min(4 * size, largest_batch())
        position = Position(last[5] or b"", last[0])
        largest = bodies.largest_carried(size)
        (result,) = await session.run([_step(collection, plan, bounds, position, size, largest)])
        rows = _rows(result, plan)
        async for part in _complete(session, collection, rows):
            yield part
        if len(rows) < size:
            return
        last = rows[-1]


async def _complete(
    session: StatementRunner, collection: CollectionFacts, rows: list[Row]
) -> AsyncIterator[list[Row]]:
    """Yield rows in their order with all bodies, in parts whose omitted bodies fit together."""
    if rows and not any(bodies.omitted_size(row[4]) for row in rows):
        yield rows
        return
    cells = [(row[0], row[4]) for row in rows]
    async for part, omitted in bodies.read_omitted(session, collection.raw, cells):
        yield [(*row[:4], omitted.get(row[0], row[4]), row[5]) for row in rows[part]]


def statement(
    collection: CollectionFacts, plan: CandidatePlan, bounds: Range
) -> tuple[Statement, tuple[Parameter, ...]]:
    """Return the statement for the first batch of a range."""
    largest = bodies.largest_carried(FIRST_BATCH)
    scan_statement, parameters = _step(collection, plan, bounds, None, FIRST_BATCH, largest)
    return scan_statement, tuple(parameters)


def _step(
    collection: CollectionFacts,
    plan: CandidatePlan,
    bounds: Range,
    position: Position | None,
    size: int,
    largest_body: bytes,
) -> Step:
    low, high = bounds[0], bounds[1] or BEHIND_ALL
    if plan.index is None:
        after = position.document_key if position is not None else b""
        return _DOCUMENTS, (collection.id.bytes, low, high, after, int8(size), largest_body)
    head = (collection.id.bytes, int8(plan.index.number))
    if plan.backward:
        begin = position or Position(BEHIND_ALL, b"")
        end = (begin.entry, begin.document_key, int8(size), largest_body)
        return _BACKWARD, (*head, low, high, *end)
    # No document's key is empty, so after (low, "") means from low on.
    begin = position if position and position.entry >= low else Position(low, b"")
    return _FORWARD, (*head, begin.entry, begin.document_key, high, int8(size), largest_body)


def _few(collection: CollectionFacts, plan: CandidatePlan, index: int) -> Step:
    entries = plan.estimate or 0
    return _FEW, (
        collection.id.bytes,
        int8(index),
        byteas([low for low, _ in plan.ranges]),
        byteas([high or BEHIND_ALL for _, high in plan.ranges]),
        int8(entries + 1),
        bodies.largest_carried(entries),
    )


def _rows(result: StatementResult, plan: CandidatePlan) -> list[Row]:
    """Return all rows. There are so many that each function call per row matters."""
    cell, with_entry, rows = result.reader(), plan.index is not None, list[Row]()
    for row in range(result.rows):
        version, created_us, updated_us = _NUMBERS(cell(row, 1) + cell(row, 2) + cell(row, 3))
        rows.append(
            (
                cell(row, 0),
                version,
                (created_us + EPOCH_2000_US) // 1000,
                (updated_us + EPOCH_2000_US) // 1000,
                cell(row, 4),
                cell(row, 5) if with_entry else None,
            )
        )
    return rows
