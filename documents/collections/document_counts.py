"""The number of documents in each collection, cheap enough to be requested every few seconds.

A collection's documents are counted up to `EXACT_UP_TO`. Beyond that, the number is PostgreSQL's
estimate from its statistics, so the cost of a call does not grow with the data. The storage node
counts the documents of native collections as they change.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connections, transaction

from documents.backend import Backend
from documents.collections.node_upkeep import StoredSize, sizes_of
from foundation.errors import Unavailable
from foundation.scope import current_tenant_id

EXACT_UP_TO = 1_000

_COUNT = """
SELECT c.id, c.name, counted.documents, c.backend
FROM (
    SELECT id, name, backend FROM documents_collection
    WHERE tenant_id = %(tenant)s AND state = 'active' ORDER BY name LIMIT %(collections)s
) AS c
CROSS JOIN LATERAL (
    SELECT count(*) AS documents FROM (
        SELECT FROM documents_document d
        WHERE d.collection_id = c.id AND d.body IS NOT NULL LIMIT %(documents)s
    ) AS first_documents
) AS counted
ORDER BY c.name
"""
_ESTIMATED = "SELECT FROM documents_document WHERE collection_id = %s AND body IS NOT NULL"


@dataclass(frozen=True, slots=True)
class DocumentCount:
    """The number of documents of one collection."""

    name: str
    documents: int
    is_estimate: bool


def count_documents(max_collections: int) -> list[DocumentCount]:
    """Return the counts of the first collections of the tenant in scope, by name. Those of native
    collections are missing while the storage node is unavailable.
    """
    bounds: dict[str, UUID | int] = {
        "tenant": current_tenant_id(),
        "collections": max_collections,
        "documents": EXACT_UP_TO + 1,
    }
    with connections["default"].cursor() as cursor:
        cursor.execute(_COUNT, bounds)
        rows = cursor.fetchall()
    estimates = _estimate([row[0] for row in rows if row[2] > EXACT_UP_TO])
    native = [row[0] for row in rows if row[3] == Backend.NATIVE]
    sizes = _sizes_in_node(native) if native else {}
    counts = []
    for collection_id, name, counted, backend in rows:
        if backend == Backend.POSTGRES:
            documents = max(counted, estimates.get(collection_id, 0))
            counts.append(DocumentCount(name, documents, counted > EXACT_UP_TO))
        elif collection_id in sizes:
            counts.append(DocumentCount(name, sizes[collection_id].documents, is_estimate=False))
    return counts


def _sizes_in_node(collection_ids: Sequence[UUID]) -> dict[UUID, StoredSize]:
    """Return no sizes while the storage node is unavailable."""
    try:
        return sizes_of(current_tenant_id(), collection_ids)
    except Unavailable:
        return {}


def _estimate(collection_ids: Sequence[UUID]) -> dict[UUID, int]:
    """Return the planner's estimates, in which no condition on the tenant takes part: the planner
    would treat tenant and collection as independent, and estimate far too few.
    """
    if not collection_ids:
        return {}
    statement = " UNION ALL ".join([_ESTIMATED] * len(collection_ids))
    with transaction.atomic(using="relay"), connections["relay"].cursor() as cursor:
        # The parts of a parallel plan are not in the order of the statement.
        cursor.execute("SET LOCAL max_parallel_workers_per_gather = 0")
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", collection_ids)
        (explained,) = cursor.fetchone()
    root = (json.loads(explained) if isinstance(explained, str) else explained)[0]["Plan"]
    plans = root["Plans"] if len(collection_ids) > 1 else [root]
    return dict(zip(collection_ids, (int(plan["Plan Rows"]) for plan in plans), strict=True))
