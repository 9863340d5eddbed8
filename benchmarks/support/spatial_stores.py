"""Points in both backends and in a table of PostgreSQL, in one process of the application.

`benchmarks.spatial` starts it. It prints what the queries took as a line of JSON. They run as in a
web process, without HTTP.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast
from uuid import UUID

import numpy as np
import psycopg

from benchmarks.support.report import median
from benchmarks.support.spatial_points import Points, clustered, half_width
from documents.store.facts import CollectionFacts
from documents.store.large_results import ReadAllowance
from documents.store.queries import Budget, DocumentQuery, answer, opened
from documents.store.snapshot import (
    CandidateBatch,
    CandidateQuery,
    DocumentSnapshot,
    PlannedCandidates,
)
from documents.store.sync import run, write_all
from documents.store.write import WriteCall
from foundation.json_types import JsonObject, JsonValue
from rillbase_native import Filter, Operation, Operations, Sort, Value

BACKENDS = ("native", "postgres")
GIST = "gist"
SELECTIVITIES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
NEAREST = (1, 10, 100, 1_000)
_BULK = 500
_PAGE_BYTES = 16 * 1024 * 1024
#: The most documents of a result of `$geoWithin`, which are the first by their numbers.
_LIMIT = 100
#: Queries that take longer are not repeated.
_LONG_MS = 3_000


@dataclass(frozen=True, slots=True)
class SpatialQuery:
    """One condition, in our language and in SQL."""

    condition: JsonObject
    limit: int
    sql: str
    parameters: tuple[object, ...]
    #: Whether PostgreSQL's operator is exact up to the edge. That for polygons compares products of
    #: coordinates with a tolerance of a millionth, which is much for a small polygon.
    is_exact: bool = True


@dataclass(slots=True)
class CountedSnapshot:
    """A snapshot that counts the documents that are read."""

    inner: DocumentSnapshot
    examined: int = 0

    async def candidates(
        self, collection: CollectionFacts, request: CandidateQuery
    ) -> PlannedCandidates:
        planned = await self.inner.candidates(collection, request)
        return replace(planned, batches=self._counted(planned.batches))

    async def has_more_than(self, collection: CollectionFacts, documents: int) -> bool:
        return await self.inner.has_more_than(collection, documents)

    async def _counted(
        self, batches: AsyncIterator[CandidateBatch]
    ) -> AsyncIterator[CandidateBatch]:
        async for batch in batches:
            self.examined += batch.examined
            yield batch


@dataclass(slots=True)
class Measured:
    """Times and documents of the queries of one kind in one system."""

    times_ms: list[float] = field(default_factory=list)
    examined: int = 0
    matched: int = 0

    def summary(self) -> JsonObject:
        # The first query fills caches.
        times_ms = self.times_ms[1:] or self.times_ms
        amplification = self.examined / max(self.matched, 1)
        return {"ms": median(times_ms), "amplification": amplification}


class SpatialStores:
    """The stores, filled with the same points."""

    def __init__(self, tenant: UUID, points: Points) -> None:
        self._tenant = tenant
        self._table = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        self.fill_s = {backend: self._fill(backend, points) for backend in BACKENDS}
        self.fill_s[GIST] = self._fill_table(points)

    def _fill(self, backend: str, points: Points) -> float:
        began_s = time.perf_counter()
        for start in range(0, len(points), 20 * _BULK):
            documents = [
                {"_id": number, "n": number, "place": at, "plain": at}
                for number, at in enumerate(points[start : start + 20 * _BULK].tolist(), start)
            ]
            inserts = [
                Operation.insert(Value.parse(json.dumps(document).encode()))
                for document in documents
            ]
            writes = [
                WriteCall(self._tenant, backend, Operations(inserts[at : at + _BULK]), atomic=False)
                for at in range(0, len(inserts), _BULK)
            ]
            if any(written.outcomes.refusals() for written in write_all(writes)):
                raise AssertionError("a point was not stored")
        return time.perf_counter() - began_s

    def _fill_table(self, points: Points) -> float:
        began_s = time.perf_counter()
        cursor = self._table.cursor()
        cursor.execute("CREATE TABLE bench_points (id int PRIMARY KEY, p point, body text)")
        with cursor.copy("COPY bench_points FROM STDIN") as copy:
            for number, (x, y) in enumerate(points.tolist()):
                body = json.dumps({"_id": number, "n": number, "place": [x, y], "plain": [x, y]})
                copy.write_row((number, f"({x!r},{y!r})", body))
        cursor.execute("CREATE INDEX ON bench_points USING gist (p)")
        for table in ("bench_points", "documents_document", "documents_indexentry"):
            cursor.execute(f"VACUUM ANALYZE {table}".encode())
        return time.perf_counter() - began_s

    async def measure(self, queries: list[SpatialQuery], systems: tuple[str, ...]) -> JsonObject:
        """Run queries in all systems in turn, and compare the numbers of their results."""
        measured = {system: Measured() for system in systems}
        for query in [queries[0], *queries]:
            counts = dict[str, int]()
            for system, one in measured.items():
                if one.times_ms and one.times_ms[-1] > _LONG_MS:
                    continue
                began_s = time.perf_counter()
                examined, counts[system] = await self._run(system, query)
                one.times_ms.append((time.perf_counter() - began_s) * 1000)
                one.examined += examined
                one.matched += counts[system]
            # For PostgreSQL, a point up to a millionth beside an edge is on it.
            in_table = counts.pop(GIST, 0)
            other = abs(in_table - max(counts.values(), default=0)) if query.is_exact else 0
            if len(set(counts.values())) > 1 or other > 3 + max(counts.values(), default=0) // 100:
                raise AssertionError(f"{query}: {counts}, {other} others in the table")
        return {system: one.summary() for system, one in measured.items()}

    async def _run(self, system: str, query: SpatialQuery) -> tuple[int, int]:
        """Return how many documents were read, and how many match; of `$near`, are returned."""
        if system == GIST:
            rows = self._table.execute(query.sql.encode(), query.parameters).fetchall()
            return len(rows), int(rows[0][-1]) if rows and len(rows[0]) == 3 else len(rows)
        backend, _, path = system.partition("-")
        condition = Filter.parse(
            Value.parse(json.dumps({path or "place": query.condition}).encode())
        )
        by_number = Value.parse(b'[["n",1]]')
        sort = Sort.parse(None, condition) if condition.ranks else Sort.parse(by_number)
        document_query = DocumentQuery(condition, sort, limit=query.limit)
        allowance = ReadAllowance.in_turn()
        async with opened(
            self._tenant, backend, condition, None, allowance=allowance, is_fixed=False
        ) as reader:
            counted = CountedSnapshot(reader.snapshot)
            own = replace(reader, snapshot=cast("DocumentSnapshot", counted))
            budget = Budget.unlimited(_PAGE_BYTES)
            selection, _ = await answer(own, document_query, budget=budget)
            rows, _ = selection.rows()
        return counted.examined, len(rows) if condition.ranks else selection.matched


def _box(center: Points, half: float, *, is_polygon: bool) -> SpatialQuery:
    """Return the first points of a square, or of a polygon of the same area that is a diamond."""
    x, y = center.tolist()
    select = (
        "SELECT id, body, count(*) OVER () FROM bench_points "
        "WHERE p <@ %s::{kind} ORDER BY id LIMIT %s"
    )
    if not is_polygon:
        corners: list[JsonValue] = [[x - half, y - half], [x + half, y + half]]
        text = f"(({x - half!r},{y - half!r}),({x + half!r},{y + half!r}))"
        sql = select.format(kind="box")
        return SpatialQuery({"$geoWithin": {"$box": corners}}, _LIMIT, sql, (text, _LIMIT))
    reach = half * 2**0.5
    pairs = [(x - reach, y), (x, y - reach), (x + reach, y), (x, y + reach)]
    corners = [[*pair] for pair in pairs]
    text = "(" + ",".join(f"({a!r},{b!r})" for a, b in pairs) + ")"
    sql = select.format(kind="polygon")
    condition: JsonObject = {"$geoWithin": {"$polygon": corners}}
    return SpatialQuery(condition, _LIMIT, sql, (text, _LIMIT), is_exact=False)


def _near(center: Points, count: int, *, is_sphere: bool) -> SpatialQuery:
    at = center.tolist()
    point = {"$geometry": {"type": "Point", "coordinates": at}} if is_sphere else at
    sql = "SELECT id, body FROM bench_points ORDER BY p <-> %s::point LIMIT %s"
    return SpatialQuery({"$near": point}, count, sql, (f"({at[0]!r},{at[1]!r})", count))


async def _measure(
    stores: SpatialStores, points: Points, n_queries: int, show: Callable[[str], None]
) -> JsonObject:
    """Measure all kinds of queries. The places of queries are as those of points."""
    random = np.random.default_rng(2)
    results = JsonObject()

    def centers(count: int) -> Points:
        chosen: Points = points[random.integers(len(points), size=count)]
        return chosen

    has_scans = len(points) <= 200_000
    everything: tuple[str, ...] = (*BACKENDS, GIST)
    if has_scans:
        everything = (*everything, "postgres-plain", "native-plain")
    for share in SELECTIVITIES:
        if share * len(points) < 0.5:
            continue
        count = max(min(n_queries, int(3 * n_queries * 1e-3 / share)), 3)
        for kind in ("box", "polygon"):
            name = f"{kind}_{share:g}"
            show(name)
            queries = [
                _box(at, half_width(points, at, share), is_polygon=kind == "polygon")
                for at in centers(count)
            ]
            systems = everything if kind == "box" and share in (1e-4, 1e-1) else everything[:3]
            results[name] = await stores.measure(queries, systems)
    for limit in NEAREST:
        for kind in ("plane", "sphere"):
            name = f"near_{kind}_{limit}"
            show(name)
            count = max(n_queries * 10 // max(limit, 10), 5)
            queries = [_near(at, limit, is_sphere=kind == "sphere") for at in centers(count)]
            systems = everything if kind == "plane" and limit == 10 else everything[:3]
            results[name] = await stores.measure(queries, systems)
    far = [_near(np.array([x, -88.5]), 10, is_sphere=False) for x in random.uniform(-170, 170, 20)]
    results["near_plane_far"] = await stores.measure(far, everything[:3])
    return results


def main() -> None:
    """Fill, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tenant", type=UUID)
    parser.add_argument("documents", type=int)
    parser.add_argument("queries", type=int)
    arguments = parser.parse_args()
    points = clustered(arguments.documents, 1)
    stores = SpatialStores(arguments.tenant, points)
    show = partial(print, flush=True)
    results = run(partial(_measure, stores, points, arguments.queries, show))
    print(json.dumps({"fill_s": stores.fill_s, "results": results}), flush=True)
