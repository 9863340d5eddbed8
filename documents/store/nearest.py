"""Reads the nearest documents from a spatial index: those up to a distance within which there are
enough of them.

Reading up to a distance is a query with this `$maxDistance`, which the planner and both backends
answer like others. If it yields as many documents as are needed, no other document is nearer. A
distance is chosen by counting entries, and increased if the rest of the filter matches too few. If
most of the collection would have to be read, the query is answered without these reads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from documents.store.facts import CollectionFacts, IndexFacts
from documents.store.planner import COUNT_AT_MOST
from documents.store.snapshot import CandidateQuery, DocumentSnapshot, PlannedCandidates
from rillbase_native import Filter, Sort, leading_double

#: Smaller collections are read as a whole.
_FEWEST_DOCUMENTS = 1_000
#: Entries to aim at for each document that is needed: cells cover more than a circle does.
_ENTRIES_PER_DOCUMENT, _MORE_ENTRIES = 3, 8
#: Numbers of entries up to this one are aimed at by counting, greater ones by the density.
_LARGEST_AIM = COUNT_AT_MOST * 3 // 4
#: A read that is not of the whole collection reads at most this part of its documents.
_PART = 4
#: How often entries are counted for a read, and the number of reads.
_MOST_COUNTS, _MOST_READS = 10, 8
#: The growth of the entries that a read aims at: the least, the greatest, and that after a read
#: without results.
_LEAST_GROWTH, _GREATEST_GROWTH, _GROWTH_FROM_NONE = 2.0, 4.0, 16.0


@dataclass(frozen=True, slots=True)
class ReadWithin:
    """The documents up to a distance."""

    filter: Filter
    candidates: PlannedCandidates
    distance: float
    #: Whether no matches are farther away.
    is_last: bool
    #: Reading more documents than these is not worthwhile; None: it is in any case.
    most_documents: float | None = None


@dataclass(slots=True)
class NearestReads:
    """Chooses up to which distances an index is read for a query."""

    snapshot: DocumentSnapshot
    collection: CollectionFacts
    request: CandidateQuery
    index: IndexFacts
    #: The next distance to count within.
    distance: float
    #: The greatest distance up to which a part of the index is read, and that of all matches.
    widest: float
    farthest: float
    #: From this number of documents on, the collection cannot be read as a whole.
    most_examined: int
    #: Up to this distance there are too few.
    nearer: float = 0.0
    #: How many entries the next read aims at.
    aim: float = field(init=False)
    _reads: int = 0
    #: How many entries the previous read had.
    _examined: int = 0
    #: Whether only a collection that cannot be read as a whole is read further.
    _is_large: bool = False

    def __post_init__(self) -> None:
        self.aim = _ENTRIES_PER_DOCUMENT * (self.request.rows + 1) + _MORE_ENTRIES

    @classmethod
    def of(
        cls,
        snapshot: DocumentSnapshot,
        collection: CollectionFacts,
        request: CandidateQuery,
        most_examined: int,
    ) -> NearestReads | None:
        """Return the reads for a query that orders by distance; None if no index supports them."""
        near = request.filter.near()
        if near is None or request.filter.id_bounds() is not None:
            return None
        path, order, first, widest, farthest = near
        by_distance = Sort.parse(None, request.filter).canonical()
        ready = (index for index in collection.indexes if index.ready)
        index = next((index for index in ready if index.fields == ((path, order),)), None)
        if index is None or request.sort.canonical() != by_distance:
            return None
        return cls(snapshot, collection, request, index, first, widest, farthest, most_examined)

    async def next(self) -> ReadWithin | None:
        """Return the next read; None: the collection is read as a whole."""
        least = math.inf if self._is_large else max(_FEWEST_DOCUMENTS, _PART * self.aim)
        if self._reads == _MOST_READS or not await self._has_more_than(least):
            return None
        if not self._reads and self.request.after is not None:
            await self._skip_to(self.request.after.sort_position)
        self._reads += 1
        chosen = await self._choose()
        if chosen is None:
            return None
        entries = chosen.candidates.plan.estimate or 0
        most = 2 * max(self.aim, entries)
        if not await self._has_more_than(_PART * (entries if entries < COUNT_AT_MOST else most)):
            return None
        return replace(chosen, most_documents=None if self._is_large else most)

    def are_too_many(self) -> None:
        """Read only what cannot be read as a whole after a read with too many documents."""
        self._is_large = True

    def are_too_few(self, read: ReadWithin, examined: int, documents: int) -> None:
        """Aim at more entries after a read with this number of documents of the result."""
        missing = (self.request.rows + 1) / max(documents, 1)
        most = _GREATEST_GROWTH if documents else _GROWTH_FROM_NONE
        growth = min(max(2 * missing, _LEAST_GROWTH), most)
        self.nearer = read.distance
        self._examined = examined
        self.aim = growth * max(examined, self.aim / most)
        self.distance = read.distance * math.sqrt(growth)

    async def _skip_to(self, sort_position: bytes) -> None:
        """Begin at the distance of the previous page's last document."""
        distance = leading_double(sort_position)
        if not distance or distance >= self.widest:
            return
        within = await self._within(distance)
        entries = within.candidates.plan.estimate if within is not None else None
        if entries:
            self.nearer = distance
            self.distance = distance * math.sqrt(1 + self.aim / entries)
            self.aim += entries

    async def _choose(self) -> ReadWithin | None:
        """Choose a distance with about as many entries as are aimed at; None: there is none, or the
        planner prefers another index.
        """
        if self._examined >= _LARGEST_AIM:
            return await self._within(self.distance)
        aim = min(self.aim, _LARGEST_AIM)
        nearer, farther, step = self.nearer, math.inf, 8.0
        chosen: ReadWithin | None = None
        distance = self.distance
        for _ in range(_MOST_COUNTS):
            within = await self._within(distance)
            if within is None:
                return None
            entries = within.candidates.plan.estimate or 0
            if entries < aim / 2 and not within.is_last:
                nearer = max(nearer, within.distance)
            else:
                farther, chosen = within.distance, within
                if entries <= min(2 * aim, COUNT_AT_MOST - 1):
                    break
            if farther <= 1.5 * nearer:
                break
            if 0 < entries < COUNT_AT_MOST:
                distance = within.distance * math.sqrt(aim / entries)
            else:
                distance = within.distance * (1 / step if entries else step)
                step = min(step * step, 1e9)
            distance = _between(distance, nearer, farther)
        if chosen is None or chosen.is_last or self.aim <= aim:
            return chosen
        entries = chosen.candidates.plan.estimate or 0
        if entries >= COUNT_AT_MOST:
            return chosen
        return await self._within(chosen.distance * math.sqrt(self.aim / max(entries, 1)))

    async def _within(self, distance: float) -> ReadWithin | None:
        """Return the documents up to a distance; None if the planner reads them in another way."""
        is_last = distance > min(self.widest, self.farthest)
        distance = self.farthest if is_last else distance
        condition = self.request.filter.within(distance)
        request = replace(self.request, filter=condition, only_plan=True)
        candidates = await self.snapshot.candidates(self.collection, request)
        plan = candidates.plan
        if plan.index != self.index or plan.estimate is None:
            return None
        return ReadWithin(condition, candidates, distance, is_last)

    async def _has_more_than(self, documents: float) -> bool:
        """Return whether the collection is larger, or too large to be read as a whole."""
        most = int(min(documents, self.most_examined))
        return await self.snapshot.has_more_than(self.collection, most)


def _between(distance: float, nearer: float, farther: float) -> float:
    """Return a distance that is not too close to either bound."""
    if nearer and not math.isinf(farther):
        margin = math.pow(farther / nearer, 0.15)
        return min(max(distance, nearer * margin), farther / margin)
    return min(max(distance, 1.5 * nearer), farther / 1.5)
