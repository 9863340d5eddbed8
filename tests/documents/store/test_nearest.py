"""The reads of the nearest documents are few, and end, whatever the distances are."""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import cast

import pytest

from documents.store.facts import CollectionFacts, IndexFacts
from documents.store.nearest import NearestReads
from documents.store.planner import COUNT_AT_MOST, CandidatePlan
from documents.store.snapshot import (
    CandidateBatch,
    CandidateQuery,
    DocumentSnapshot,
    PlannedCandidates,
)
from documents.technique import DeclaredTechnique
from rillbase_native import Filter, Sort, Value

_INDEX = IndexFacts(
    1, "by-place", (("place", "2dsphere"),), False, True, DeclaredTechnique.COMPOSITE
)
_POINT = {"type": "Point", "coordinates": [0, 0]}
_MOST_EXAMINED = 200_000
#: Half the perimeter of the sphere.
_FARTHEST = 20_000_000.0


@dataclass
class DistantDocuments:
    """A snapshot of documents at distances, whose cells contain some more entries."""

    distances: Sequence[float]
    counts: int = 0

    def number_within(self, condition: Filter, factor: float = 1.0) -> int:
        near = condition.near()
        assert near is not None
        return bisect_right(self.distances, near[4] * factor)

    async def candidates(self, _: object, request: CandidateQuery) -> PlannedCandidates:
        assert request.only_plan
        self.counts += 1
        estimate = min(self.number_within(request.filter, 1.2), COUNT_AT_MOST)
        plan = CandidatePlan(_INDEX, [], "any", estimate=estimate)
        return PlannedCandidates(plan, _nothing())

    async def has_more_than(self, _: object, documents: int) -> bool:
        return len(self.distances) > documents


async def _nothing() -> AsyncIterator[CandidateBatch]:
    return
    yield


@dataclass(frozen=True)
class Outcome:
    """What the reads of a query examined; `is_complete`: they contain the result."""

    examined: int
    counts: int
    is_complete: bool


async def read(
    distances: Sequence[float], limit: int, matches: Callable[[int], bool] = lambda _: True
) -> Outcome:
    """Read as `documents.store.queries` does; `matches` is the rest of the filter."""
    condition = Filter.parse(
        Value.parse(json.dumps({"place": {"$near": {"$geometry": _POINT}}}).encode())
    )
    request = CandidateQuery(condition, Sort.parse(None, condition), limit, now_ms=0)
    documents = DistantDocuments(sorted(distances))
    collection = cast("CollectionFacts", _Collection())
    reads = NearestReads.of(
        cast("DocumentSnapshot", documents), collection, request, _MOST_EXAMINED
    )
    assert reads is not None
    examined = 0
    while (chosen := await reads.next()) is not None:
        entries = documents.number_within(chosen.filter, 1.2)
        if chosen.most_documents is not None and entries > chosen.most_documents:
            examined += int(chosen.most_documents)
            reads.are_too_many()
            continue
        examined += entries
        numbers = range(documents.number_within(chosen.filter))
        rows = sum(map(matches, numbers))
        if chosen.is_last or rows > limit:
            return Outcome(examined, documents.counts, is_complete=True)
        reads.are_too_few(chosen, entries, rows)
    return Outcome(examined, documents.counts, is_complete=False)


@dataclass
class _Collection:
    indexes: tuple[IndexFacts, ...] = (_INDEX,)


def uniform(count: int) -> list[float]:
    generator = random.Random(1)
    return [_FARTHEST * generator.random() ** 0.5 for _ in range(count)]


@pytest.mark.parametrize("limit", [1, 10, 100])
async def test_few_of_evenly_spread_documents_are_read(limit: int) -> None:
    outcome = await read(uniform(100_000), limit)
    assert outcome.is_complete
    assert outcome.examined <= 8 * limit + 40
    assert outcome.counts <= 6


async def test_a_distant_cluster_costs_a_part_of_a_full_read_at_most() -> None:
    generator = random.Random(2)
    for width in (50_000, 2_000_000):
        distances = [9_000_000 + generator.gauss(0, width) for _ in range(100_000)]
        outcome = await read(distances, 10)
        assert outcome.is_complete == (width > 1_000_000), width
        assert outcome.examined < 5_000, width
        assert outcome.counts <= 12, width


async def test_documents_at_one_distance_are_read_as_a_whole() -> None:
    outcome = await read([5_000_000.0] * 50_000, 10)
    assert not outcome.is_complete
    assert outcome.examined < 50_000 / 4
    assert outcome.counts <= 12


async def test_more_documents_than_can_be_read_as_a_whole_are_read_by_the_index() -> None:
    outcome = await read([5_000_000.0] * (_MOST_EXAMINED + 1), 10)
    assert outcome.is_complete


async def test_a_selective_filter_costs_a_part_of_a_full_read() -> None:
    for part in (300, 3_000, 10**9):
        outcome = await read(uniform(100_000), 10, lambda number, part=part: number % part == 1)  # type: ignore[misc]
        assert outcome.examined < 100_000 / 2, part
        assert outcome.counts <= 30, part
    outcome = await read(uniform(100_000), 10, lambda number: number % 30 == 1)
    assert outcome.is_complete
    assert outcome.examined < 10_000


async def test_small_collections_and_most_of_a_collection_are_read_as_a_whole() -> None:
    for count, limit in ((900, 1), (1_200, 1_000), (5_000, 1_000)):
        outcome = await read(uniform(count), limit)
        assert not outcome.is_complete
        assert outcome.examined <= count / 4, count
        assert outcome.counts <= 10, count
