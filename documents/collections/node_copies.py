"""Copies collections from PostgreSQL to the storage node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from django.db import connections

from documents.collections.backend_copies import (
    STEP_BYTES,
    STEP_DOCUMENTS,
    CopiedPart,
    MoveFailed,
)
from documents.collections.node_upkeep import drop_from_node, sizes_of
from documents.models import Collection
from documents.store import facts
from documents.store.node.definitions import call, node_name
from documents.store.outdated_calls import retried
from documents.store.sync import run
from foundation.resp_pipeline import Argument

#: Above this number, documents are not counted.
MAX_COUNTED = 5_000_000

#: The key, version, times in milliseconds, and body of some rows.
_COLUMNS = (
    "floor(extract(epoch FROM created_at) * 1000)::bigint, "
    "floor(extract(epoch FROM updated_at) * 1000)::bigint, body"
)
#: Deleted documents, too: their versions are not used again.
_NEXT = f"""
SELECT key, version, {_COLUMNS} FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY key) - octet_length(body) AS size_before
    FROM (
        SELECT key, version, created_at, updated_at, coalesce(body, '') AS body
        FROM documents_document WHERE collection_id = %s AND key > %s ORDER BY key LIMIT %s
    ) AS few
) AS sized
WHERE size_before < %s
"""  # noqa: S608 -- constants
#: A row is missing if its tombstone was removed.
_CHANGED = f"""
SELECT key, version, {_COLUMNS} FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY key) - octet_length(body) AS size_before
    FROM (
        SELECT c.key, coalesce(d.version, c.version) AS version,
            coalesce(d.created_at, now()) AS created_at,
            coalesce(d.updated_at, now()) AS updated_at, coalesce(d.body, '') AS body
        FROM documents_movechange c
        LEFT JOIN documents_document d ON d.collection_id = c.collection_id AND d.key = c.key
        WHERE c.collection_id = %s ORDER BY c.key LIMIT %s
    ) AS few
) AS sized
WHERE size_before < %s
"""  # noqa: S608 -- constants
#: Those that were changed again remain.
_FORGET = """
DELETE FROM documents_movechange c USING unnest(%s::bytea[], %s::bigint[]) AS i (key, version)
WHERE c.collection_id = %s AND c.key = i.key AND c.version <= i.version
"""
_COUNT = """
SELECT (SELECT count(*) FROM (
    SELECT FROM documents_document WHERE collection_id = %s AND body IS NOT NULL LIMIT %s
) AS counted), (SELECT count(*) FROM documents_movechange WHERE collection_id = %s)
"""

#: Key, version, times of creation and change in milliseconds, and BSON; empty: it was deleted.
_Row = tuple[bytes, int, int, int, bytes]


class NodeCopies:
    """A collection in PostgreSQL that moves to the storage node."""

    must_seal = False

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def clear(self) -> bool:
        drop_from_node(self._collection.tenant_id, self._collection.pk)
        return True

    def count(self) -> int:
        return self._count()[0]

    def copy_next(self, after: bytes) -> CopiedPart:
        rows = self._read(_NEXT, self._collection.pk, after, STEP_DOCUMENTS, STEP_BYTES)
        self._store(rows)
        documents = sum(1 for *_, body in rows if body)
        return CopiedPart(documents, rows[-1][0] if rows else None)

    def copy_changed(self) -> int:
        rows = self._read(_CHANGED, self._collection.pk, STEP_DOCUMENTS, STEP_BYTES)
        self._store(rows)
        keys, versions = [row[0] for row in rows], [row[1] for row in rows]
        with connections["default"].cursor() as cursor:
            cursor.execute(_FORGET, (keys, versions, self._collection.pk))
        return len(rows)

    def check(self) -> None:
        documents, uncopied = self._count()
        sizes = sizes_of(self._collection.tenant_id, [self._collection.pk])
        copied = sizes[self._collection.pk].documents
        if documents < MAX_COUNTED and abs(copied - documents) > uncopied:
            raise MoveFailed(f"{copied} of {documents} documents were copied.")

    def complete(self, collection: Collection) -> None:
        """Leave the row as it is: the node gets the version floor with the definition."""

    def close_former_after_commit(self, collection: Collection) -> None:
        """Do nothing: calls compare their version with the row of the collection."""

    def _read(self, statement: str, *parameters: UUID | bytes | int) -> list[_Row]:
        with connections["default"].cursor() as cursor:
            cursor.execute(statement, parameters)
            return [
                (bytes(key), *numbers, bytes(body)) for key, *numbers, body in cursor.fetchall()
            ]

    def _count(self) -> tuple[int, int]:
        """Return how many documents there are, and how many changes have not been copied."""
        identity = self._collection.pk
        with connections["default"].cursor() as cursor:
            cursor.execute(_COUNT, (identity, MAX_COUNTED, identity))
            documents, uncopied = cursor.fetchone()
        return int(documents), int(uncopied)

    def _store(self, rows: Sequence[_Row]) -> None:
        if rows:
            run(partial(retried, partial(self._apply, rows)))

    async def _apply(self, rows: Sequence[_Row]) -> None:
        collection = await facts.find(self._collection.tenant_id, self._collection.name, fresh=True)
        words: list[Argument] = [word for row in rows for word in row]
        await call(
            [collection], "RB.COL.APPLY", node_name(collection), collection.write_version, *words
        )
