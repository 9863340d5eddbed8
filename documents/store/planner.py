"""Chooses the rows that are read for a query, a proven superset of the matches, and their order.

There are three kinds of plans: by the documents' keys, by an index that is read in the order of the
sort, and by an index whose rows are sorted afterwards. Ranges with fewer entries are preferred;
entries are counted, up to a limit, not estimated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from documents.index_fields import FieldOrder
from documents.store.facts import CollectionFacts, IndexFacts
from documents.store.keys import BEHIND_ALL
from foundation.postgres import Statement, StatementRunner
from foundation.postgres.arrays import byteas
from foundation.postgres.session import Oid, Step, int8
from rillbase_native import Bounds, Filter, Sort

Range = tuple[bytes, bytes | None]
CandidateOrder = Literal["id", "index", "time", "any"]
Fields = Sequence[tuple[str, FieldOrder]]
#: In a filter as BSON, an array as the operand of `$eq` or within that of `$in` or `$all`.
_ARRAY_OPERAND = re.compile(rb"\x04(\$eq|\d+)\0")
EVERYTHING: list[Range] = [(b"", None)]
#: Counting stops here: above this number, the plans do not differ much.
COUNT_AT_MOST = 2_000
#: How many documents are read in their order while one is read by an entry, and the size of a
#: collection from which on it is not read as a whole.
SCANNED_PER_ENTRY, MOST_SCANNED = 5, 200_000

_COUNT = Statement(
    "SELECT (SELECT count(*) FROM (SELECT 1 FROM unnest($2::bytea[], $3::bytea[]) AS r(low, high) "
    "CROSS JOIN LATERAL (SELECT 1 FROM documents_indexentry e WHERE e.index_number = $1 "
    "AND e.key >= r.low AND e.key < r.high LIMIT $4) AS found LIMIT $4) AS n), "
    # The empty key denotes documents that have several keys.
    "EXISTS (SELECT 1 FROM documents_indexentry m WHERE m.index_number = $1 AND m.key = '')",
    (Oid.INT8, Oid.BYTEA_ARRAY, Oid.BYTEA_ARRAY, Oid.INT8),
)
_COUNT_SOME = Statement(
    "SELECT count(*) FROM (SELECT 1 FROM documents_document WHERE collection_id = $1 LIMIT $2) "
    "AS first",
    (Oid.UUID, Oid.INT8),
)


@dataclass(frozen=True, slots=True)
class CandidatePlan:
    """How candidates are read.

    `order`: `id` in the order of keys; `index` in the order of an index, which is the sort's;
    `time` the documents that were changed last first; `any` in any order.
    """

    index: IndexFacts | None
    ranges: Sequence[Range]
    order: CandidateOrder
    bounds: Bounds | None = None
    backward: bool = False
    estimate: int | None = None

    @property
    def ordering_index(self) -> int:
        """The number of the index that gives the order; 0: none."""
        return self.index.number if self.index is not None and self.order != "any" else 0

    @property
    def has_few_entries(self) -> bool:
        """Whether all entries of the ranges were counted."""
        return self.estimate is not None and self.estimate < COUNT_AT_MOST

    @property
    def reads_everything(self) -> bool:
        return self.index is None and list(self.ranges) == EVERYTHING


@dataclass(frozen=True, slots=True)
class Count:
    """The number of entries in a candidate's ranges, and whether its order is reliable."""

    candidate: IndexCandidate
    entries: int
    keeps_order: bool


@dataclass(frozen=True, slots=True)
class IndexCandidate:
    """An index and the ranges that a filter implies for it."""

    index: IndexFacts
    bounds: Bounds | None
    direction: int | None


def restricts_sort(query_filter: Filter, index_fields: Fields, bounds: Bounds) -> bool:
    """Return whether the ranges exclude values of the fields that an index sorts by. A document
    with several values may then be found by one value but sorted by another that is not read: it
    would come too late, or on no page at all. If one field is part of another (`a` and `a.b`), the
    value of the first restricts those of the second.
    """
    # If a document is found by the entry of a whole array, that entry does not sort by the values
    # of its other arrays.
    if _ARRAY_OPERAND.search(query_filter.canonical()):
        return True
    paths = [path for path, _ in index_fields]
    if any(inner.startswith(f"{outer}.") for inner in paths for outer in paths):
        return True
    fixed = query_filter.bounds(index_fields[: bounds.equalities]) if bounds.equalities else None
    return fixed is None or fixed.ranges != bounds.ranges


def candidates(
    collection: CollectionFacts, query_filter: Filter, sort: Sort
) -> list[IndexCandidate]:
    """Return the indexes that narrow the query or give its order."""
    choices = []
    for index in collection.indexes:
        if not index.ready:
            continue
        bounds = query_filter.bounds(index.fields)
        equalities = bounds.equalities if bounds is not None else 0
        direction = sort.direction(index.fields, equalities)
        if bounds is not None or direction is not None:
            choices.append(IndexCandidate(index, bounds, direction))
    return choices


async def choose(
    session: StatementRunner,
    collection: CollectionFacts,
    query_filter: Filter,
    sort: Sort,
    *,
    n_rows: int,
    in_order: bool = True,
    needs_all: bool = False,
) -> CandidatePlan:
    """Choose a plan. `in_order` False: an index's order turned out to differ from the sort's.
    `needs_all`: all matches are read, in any order.
    """
    by_id = query_filter.id_bounds()
    order: Literal["id", "any"] = "id" if sort.by_id else "any"
    if by_id is not None:
        return CandidatePlan(None, by_id, order)
    choices = candidates(collection, query_filter, sort)
    counts = await _count(session, query_filter, choices)
    bounded = sorted(
        (
            CandidatePlan(
                count.candidate.index,
                count.candidate.bounds.ranges,
                "any",
                count.candidate.bounds,
                estimate=count.entries,
            )
            for count in counts
            if count.candidate.bounds is not None
        ),
        key=lambda plan: plan.estimate or 0,
    )
    few = bounded[0] if bounded and (bounded[0].estimate or 0) < COUNT_AT_MOST else None
    if in_order and (few is None or (few.estimate or 0) > 4 * n_rows):
        ordered = _plan_by_order(choices, counts)
        if ordered is not None:
            return ordered
    if few is not None:
        return few
    if bounded and not sort.by_id:
        return bounded[0]
    if bounded and needs_all and await _is_selective(session, collection, bounded[0]):
        return bounded[0]
    return CandidatePlan(None, EVERYTHING, order)


async def _is_selective(
    session: StatementRunner, collection: CollectionFacts, plan: CandidatePlan
) -> bool:
    """Return whether an index with many entries leaves few enough of the documents to be read."""
    number = plan.index.number if plan.index is not None else 0
    most = MOST_SCANNED // SCANNED_PER_ENTRY
    (result,) = await session.run([_counted(number, plan.ranges, most)])
    entries = result.integer(0, 0)
    return await has_more_than(session, collection, entries * SCANNED_PER_ENTRY)


async def has_more_than(
    session: StatementRunner, collection: CollectionFacts, documents: int
) -> bool:
    """Return whether a collection has more documents, deleted ones included."""
    parameters = (collection.id.bytes, int8(documents + 1))
    (result,) = await session.run([(_COUNT_SOME, parameters)])
    return result.integer(0, 0) > documents


def _counted(index_number: int, ranges: Sequence[Range], most: int) -> Step:
    return _COUNT, (
        int8(index_number),
        byteas([low for low, _ in ranges]),
        byteas([high or BEHIND_ALL for _, high in ranges]),
        int8(most),
    )


def _plan_by_order(
    choices: Sequence[IndexCandidate], counts: Sequence[Count]
) -> CandidatePlan | None:
    """Return the narrowest index that is read in the order of the sort."""
    known = {count.candidate.index.number: count.entries for count in counts}
    unreliable = {count.candidate.index.number for count in counts if not count.keeps_order}
    usable = [
        candidate
        for candidate in choices
        if candidate.direction is not None and candidate.index.number not in unreliable
    ]
    if not usable:
        return None
    best = min(usable, key=lambda c: known.get(c.index.number, COUNT_AT_MOST + 1))
    ranges = best.bounds.ranges if best.bounds is not None else EVERYTHING
    return CandidatePlan(
        best.index,
        ranges,
        "index",
        best.bounds,
        backward=best.direction == -1,
        estimate=known.get(best.index.number),
    )


async def _count(
    session: StatementRunner, query_filter: Filter, choices: Sequence[IndexCandidate]
) -> list[Count]:
    """Count the entries of each candidate that has ranges, up to a bound."""
    bounded = [(choice, choice.bounds) for choice in choices if choice.bounds is not None]
    if not bounded:
        return []
    results = await session.run(
        [
            _counted(candidate.index.number, bounds.ranges, COUNT_AT_MOST)
            for candidate, bounds in bounded
        ]
    )
    return [
        Count(
            candidate,
            result.integer(0, 0),
            keeps_order=not result.boolean(0, 1)
            or not restricts_sort(query_filter, candidate.index.fields, bounds),
        )
        for (candidate, bounds), result in zip(bounded, results, strict=True)
    ]
