"""Which rows can answer a query: a proven superset of what matches, in which order.

There are three ways: by the documents' keys, by an index that is read in the order of the sort,
and by an index whose rows are sorted afterwards. A range of an index is preferred the fewer
entries it has; that is counted, up to a bound, and not guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from documents.store.facts import CollectionFacts, IndexFacts
from documents.store.keys import BEHIND_ALL
from foundation.postgres import Runs, Statement
from foundation.postgres.arrays import byteas
from foundation.postgres.session import Oid, int8
from rillbase_native import Bounds, Filter, Sort

Range = tuple[bytes, bytes | None]
EVERYTHING: list[Range] = [(b"", None)]
#: Counting stops here: beyond, one way is as good as another.
COUNT_AT_MOST = 2_000

_COUNT = Statement(
    "SELECT count(*) FROM (SELECT 1 FROM unnest($2::bytea[], $3::bytea[]) AS r(low, high) "
    "CROSS JOIN LATERAL (SELECT 1 FROM documents_indexentry e WHERE e.index_number = $1 "
    "AND e.key >= r.low AND e.key < r.high LIMIT $4) AS found LIMIT $4) AS n",
    (Oid.INT8, Oid.BYTEA_ARRAY, Oid.BYTEA_ARRAY, Oid.INT8),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How candidates are read.

    `order`: `id` in the order of keys; `index` in the order of an index, which is the sort's;
    `any` as they come.
    """

    index: IndexFacts | None
    ranges: Sequence[Range]
    order: Literal["id", "index", "any"]
    bounds: Bounds | None = None
    backward: bool = False
    estimate: int | None = None

    @property
    def reads_everything(self) -> bool:
        return self.index is None and list(self.ranges) == EVERYTHING


@dataclass(frozen=True, slots=True)
class Candidate:
    """An index and what a filter says about it."""

    index: IndexFacts
    bounds: Bounds | None
    direction: int | None


def candidates(collection: CollectionFacts, wanted: Filter, sort: Sort) -> list[Candidate]:
    """Return the indexes that narrow the query or give its order."""
    found = []
    for index in collection.indexes:
        if not index.ready:
            continue
        bounds = wanted.bounds(index.fields)
        equalities = bounds.equalities if bounds is not None else 0
        direction = sort.direction(index.fields, equalities)
        if bounds is not None or direction is not None:
            found.append(Candidate(index, bounds, direction))
    return found


async def choose(
    session: Runs,
    collection: CollectionFacts,
    wanted: Filter,
    sort: Sort,
    *,
    rows_wanted: int,
    in_order: bool = True,
) -> Plan:
    """Choose how to read. `in_order` False: an index's order turned out not to be the sort's."""
    by_id = wanted.id_bounds()
    order: Literal["id", "any"] = "id" if sort.by_id else "any"
    if by_id is not None:
        return Plan(None, by_id, order)
    found = candidates(collection, wanted, sort)
    counts = await _count(session, [candidate for candidate in found if candidate.bounds])
    bounded = sorted(
        (
            Plan(candidate.index, candidate.bounds.ranges, "any", candidate.bounds, estimate=count)
            for candidate, count in counts
            if candidate.bounds is not None
        ),
        key=lambda plan: plan.estimate or 0,
    )
    few = bounded[0] if bounded and (bounded[0].estimate or 0) < COUNT_AT_MOST else None
    if in_order and (few is None or (few.estimate or 0) > 4 * rows_wanted):
        ordered = _ordered(found, counts)
        if ordered is not None:
            return ordered
    if few is not None:
        return few
    if bounded and not sort.by_id:
        return bounded[0]
    return Plan(None, EVERYTHING, order)


def _ordered(found: Sequence[Candidate], counts: Sequence[tuple[Candidate, int]]) -> Plan | None:
    """Return the narrowest index that is read in the order of the sort."""
    known = {candidate.index.number: count for candidate, count in counts}
    usable = [candidate for candidate in found if candidate.direction is not None]
    if not usable:
        return None
    best = min(usable, key=lambda c: known.get(c.index.number, COUNT_AT_MOST + 1))
    ranges = best.bounds.ranges if best.bounds is not None else EVERYTHING
    return Plan(
        best.index,
        ranges,
        "index",
        best.bounds,
        backward=best.direction == -1,
        estimate=known.get(best.index.number),
    )


async def _count(session: Runs, bounded: Sequence[Candidate]) -> list[tuple[Candidate, int]]:
    """Count the entries of each candidate's ranges, up to a bound."""
    if not bounded:
        return []
    results = await session.run(
        [
            (
                _COUNT,
                (
                    int8(candidate.index.number),
                    byteas([low for low, _ in candidate.bounds.ranges]),
                    byteas([high or BEHIND_ALL for _, high in candidate.bounds.ranges]),
                    int8(COUNT_AT_MOST),
                ),
            )
            for candidate in bounded
            if candidate.bounds is not None
        ]
    )
    return [
        (candidate, result.integer(0, 0))
        for candidate, result in zip(bounded, results, strict=True)
    ]
