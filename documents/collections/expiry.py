"""Deletes expired documents, like any other delete.

Every second, for each collection with a TTL, the sweep reads the beginning of its internal index
over the field: the entries of dates that have passed. It deletes those documents through
`documents.store`, so versions, index entries and subscriptions are updated as for any delete, and
only if the document still matches: one that got a later date meanwhile remains. Until the delete
commits, every read and every subscription shows the document. As elsewhere in the query language, a
list is due when any date in it is, and a field without a date never is.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from uuid import UUID

from django.db import connections, transaction

from documents.backend import Backend
from documents.collections.indexes import TTL_INDEX
from documents.store import queries
from documents.store.sync import run, write_all
from documents.store.write import WriteCall
from documents.store.writer import write
from foundation.errors import NotFound, Unavailable
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from rillbase_native import Filter, Operation, Operations, Value, id_of

log = logging.getLogger(__name__)

ALIAS = "relay"
#: A backlog is processed in runs of this length, in batches that yield to other work.
RUN_S = 5.0
BATCH_DOCUMENTS = 500
BATCH_BYTES = 32 * 1024 * 1024
#: "RBxp" in ASCII: runs of the sweep exclude each other.
_LOCK_NUMBER = 0x52427870

_COLLECTIONS = """
SELECT c.tenant_id, c.name, c.ttl ->> 'field', (c.ttl ->> 'after_s')::bigint, i.number, c.backend
FROM documents_collection c JOIN documents_index i ON i.collection_id = c.id
WHERE c.state = 'active' AND c.ttl IS NOT NULL AND i.name = %s
    AND i.state IN ('building', 'ready')
"""
#: Expired documents by the index they were found in, in all a bounded number of bytes.
_DUE = """
SELECT number, body FROM (
    SELECT number, key, body, sum(octet_length(body)) OVER (ORDER BY number, key) AS size_until
    FROM (
        SELECT r.number, d.key, d.body
        FROM unnest(%s::bigint[], %s::bytea[], %s::bytea[]) AS r (number, low, high)
        JOIN documents_index i ON i.number = r.number
        JOIN LATERAL (
            SELECT DISTINCT document_key FROM (
                SELECT document_key FROM documents_indexentry
                WHERE index_number = r.number AND key >= r.low AND key < r.high
                ORDER BY key LIMIT %s
            ) AS first
        ) AS e ON true
        JOIN documents_document d
            ON d.collection_id = i.collection_id AND d.key = e.document_key AND d.body IS NOT NULL
        LIMIT %s
    ) AS due
) AS sized
WHERE size_until - octet_length(body) < %s
ORDER BY number
"""


@dataclass(frozen=True, slots=True)
class _ExpiryTarget:
    """A collection with a TTL, and the index that finds its expired documents."""

    tenant_id: UUID
    name: str
    index: int
    path: str
    expired: Filter
    is_native: bool

    def ranges(self) -> list[tuple[int, bytes, bytes]]:
        bounds = self.expired.bounds([(self.path, 1)])
        ranges = [] if bounds is None else bounds.ranges
        return [(self.index, low, high) for low, high in ranges if high is not None]


@task(name="documents.collections.expiry", policy=PERIODIC, quiet=True)
def sweep() -> None:
    """Delete what has expired."""
    deadline = time.monotonic() + RUN_S
    with _exclusive_run() as locked:
        while locked and expire_some() and time.monotonic() < deadline:
            pass


def expire_some() -> int:
    """Delete some expired documents. Return how many there were."""
    targets = list(_expiring())
    native = [target for target in targets if target.is_native]
    others = [target for target in targets if not target.is_native]
    expired = _expire_in_postgres(others)
    return expired + (run(partial(_expire_in_node, native)) if native else 0)


async def _expire_in_node(targets: Sequence[_ExpiryTarget]) -> int:
    """Delete expired documents of native collections, some of each."""
    expired = 0
    for target in targets:
        try:
            expired += await _expire_native(target)
        except NotFound:
            # It has been dropped meanwhile.
            continue
        except Unavailable as error:
            log.warning("the storage node is unavailable, so nothing expires in it: %s", error)
            break
    return expired


async def _expire_native(target: _ExpiryTarget) -> int:
    due = await queries.find(
        target.tenant_id, target.name, target.expired, None, limit=BATCH_DOCUMENTS
    )
    if due.bodies:
        await write(_delete_call(target, due.bodies))
    return len(due.bodies)


def _expire_in_postgres(targets: Sequence[_ExpiryTarget]) -> int:
    collections = {target.index: target for target in targets}
    ranges = [bounds for target in targets for bounds in target.ranges()]
    if not ranges:
        return 0
    columns = [list(column) for column in zip(*ranges, strict=True)]
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(_DUE, (*columns, BATCH_DOCUMENTS, BATCH_DOCUMENTS, BATCH_BYTES))
        due = [(number, bytes(body)) for number, body in cursor.fetchall()]
    if due:
        write_all(
            [
                _delete_call(collections[number], [body for _, body in rows])
                for number, rows in groupby(due, key=lambda row: row[0])
            ]
        )
    return len(due)


def _expiring() -> Iterator[_ExpiryTarget]:
    now_ms = time.time_ns() // 1_000_000
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(_COLLECTIONS, (TTL_INDEX,))
        rows = cursor.fetchall()
    for tenant_id, name, path, after_s, number, backend in rows:
        expired = _expired(path, now_ms - after_s * 1000)
        is_native = backend == Backend.NATIVE
        yield _ExpiryTarget(tenant_id, name, number, path, expired, is_native)


def _expired(path: str, latest_ms: int) -> Filter:
    """Return the filter for dates up to a moment."""
    date = {"$date": {"$numberLong": str(latest_ms)}}
    return Filter.parse(Value.parse(json.dumps({path: {"$lte": date}}).encode()))


def _delete_call(collection: _ExpiryTarget, bodies: list[bytes]) -> WriteCall:
    """Return independent deletes: a document may have changed since it was found."""
    deletes = [Operation.delete_found(id_of(body), collection.expired) for body in bodies]
    return WriteCall(collection.tenant_id, collection.name, Operations(deletes), atomic=False)


@contextmanager
def _exclusive_run() -> Iterator[bool]:
    """Yield whether no other run is active; exclude others until the block ends."""
    with transaction.atomic(using=ALIAS), connections[ALIAS].cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK_NUMBER,))
        (locked,) = cursor.fetchone()
        yield bool(locked)
