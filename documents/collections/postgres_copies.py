"""Copies collections from the storage node to PostgreSQL.

A part reflects one moment, but what is stored of the other parts may be older. So two documents may
have the same entry of a unique index for a while. Then the document that was stored last gets it:
in the end, each entry belongs to the document that has its values, because that one was stored
after the one that had them before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, cast
from uuid import UUID

from django.db import connections, transaction

from documents.collections import removal
from documents.collections.backend_copies import STEP_DOCUMENTS, CopiedPart, MoveFailed
from documents.collections.indexes import fields_of
from documents.collections.node_upkeep import sizes_of
from documents.models import Collection, Index
from documents.store import facts
from documents.store.node.copies import copy_snapshot, documents_of
from documents.store.node.definitions import call, install, node_name
from documents.store.outdated_calls import retried
from documents.store.sync import run
from rillbase_native import Definition, QueryError, key_hash

_EXISTING = (
    "SELECT d.key, d.version FROM documents_document d WHERE d.collection_id = %s "
    "AND d.key = ANY(%s)"
)
_STORE = """
INSERT INTO documents_document
    (tenant_id, collection_id, key, key_hash, version, body, created_at, updated_at)
SELECT %s, %s, i.key, i.key_hash, i.version, i.body,
    to_timestamp(i.created_ms / 1000.0), to_timestamp(i.updated_ms / 1000.0)
FROM unnest(%s::bytea[], %s::int[], %s::bigint[], %s::bytea[], %s::bigint[], %s::bigint[])
    AS i (key, key_hash, version, body, created_ms, updated_ms)
ON CONFLICT (collection_id, key) DO UPDATE SET version = excluded.version, body = excluded.body,
    created_at = excluded.created_at, updated_at = excluded.updated_at
"""
_REMOVE_ENTRIES = (
    "DELETE FROM documents_indexentry WHERE index_number = ANY(%s) AND document_key = ANY(%s)"
)
#: Entries of documents whose stored versions are older than those that gave them up.
_REMOVE_DISPLACED = """
DELETE FROM documents_indexentry e USING unnest(%s::bigint[], %s::bytea[]) AS i (number, key)
WHERE e.index_number = i.number AND e.key = i.key AND e.enforced
"""
_ADD_ENTRIES = """
INSERT INTO documents_indexentry
    (tenant_id, index_number, key, document_key, ordering, enforced)
SELECT %s, i.* FROM unnest(%s::bigint[], %s::bytea[], %s::bytea[], %s::bool[], %s::bool[])
    AS i (number, key, document_key, ordering, enforced)
"""
_COUNT = "SELECT count(*) FROM documents_document WHERE collection_id = %s AND body IS NOT NULL"


class _CopiedRow(NamedTuple):
    key: bytes
    version: int
    created_ms: int
    updated_ms: int
    #: None: it was deleted.
    body: bytes | None


class PostgresCopies:
    """A collection in the storage node that moves to PostgreSQL."""

    must_seal = True

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def clear(self) -> bool:
        deadline = time.monotonic() + removal.SLICE_S
        return removal.remove_documents(self._collection.pk, deadline)

    def count(self) -> int:
        sizes = sizes_of(self._collection.tenant_id, [self._collection.pk])
        return sizes[self._collection.pk].documents

    def copy_next(self, after: bytes) -> CopiedPart:
        place = (self._collection.tenant_id, self._collection.pk)
        with copy_snapshot() as snapshot:
            block = snapshot.block(*place, after=after)
        rows = [_CopiedRow(*document) for document in documents_of(block.rows)]
        self._store(rows)
        return CopiedPart(len(rows), block.after)

    def copy_changed(self) -> int:
        rows = run(partial(retried, self._read_changed))
        self._store(rows)
        if rows:
            copied = [(row.key, row.version) for row in rows]
            # If this is not reached, they are copied again.
            transaction.on_commit(partial(run, partial(retried, partial(self._forget, copied))))
        return len(rows)

    def check(self) -> None:
        documents = self.count()
        with connections["default"].cursor() as cursor:
            cursor.execute(_COUNT, (self._collection.pk,))
            (copied,) = cursor.fetchone()
        uncopied = len(run(partial(retried, self._read_changed)))
        if uncopied < STEP_DOCUMENTS and abs(copied - documents) > uncopied:
            raise MoveFailed(f"{copied} of {documents} documents were copied.")

    def complete(self, collection: Collection) -> None:
        """Set the version floor to that of the node."""
        sizes = sizes_of(collection.tenant_id, [collection.pk])
        floor = sizes[collection.pk].version_floor
        collection.version_floor = max(collection.version_floor, floor)

    def close_former_after_commit(self, collection: Collection) -> None:
        """Install the new definition in the node, which then rejects calls with an earlier one."""
        close = partial(_install_newest, collection.tenant_id, collection.name)
        transaction.on_commit(partial(run, close), robust=True)

    async def _read_changed(self) -> list[_CopiedRow]:
        collection = await facts.find(self._collection.tenant_id, self._collection.name, fresh=True)
        command = ("RB.COL.CHANGED", node_name(collection), collection.write_version)
        reply = await call([collection], *command, "COUNT", STEP_DOCUMENTS)
        return [_CopiedRow(*row) for row in cast("list[tuple[bytes, int, int, int, bytes]]", reply)]

    async def _forget(self, copied: Sequence[tuple[bytes, int]]) -> None:
        collection = await facts.find(self._collection.tenant_id, self._collection.name, fresh=True)
        command = ("RB.COL.COPIED", node_name(collection), collection.write_version)
        await call([collection], *command, *(word for pair in copied for word in pair))

    def _store(self, rows: Sequence[_CopiedRow]) -> None:
        """Store rows that are newer than the stored ones, with their entries."""
        collection_id, keys = self._collection.pk, [row.key for row in rows]
        indexes = list(Index.objects.filter(collection_id=collection_id, state=Index.State.READY))
        with connections["default"].cursor() as cursor:
            cursor.execute(_EXISTING, (collection_id, keys))
            stored = {bytes(key): version for key, version in cursor.fetchall()}
            newer = [row for row in rows if stored.get(row.key, 0) < row.version]
            if not newer:
                return
            columns = zip(
                *((row.key, key_hash(row.key), row.version, row.body, *row[2:4]) for row in newer),
                strict=True,
            )
            cursor.execute(_STORE, (self._collection.tenant_id, collection_id, *map(list, columns)))
            numbers = [index.number for index in indexes]
            cursor.execute(_REMOVE_ENTRIES, (numbers, [row.key for row in newer]))
            entries = _entries(indexes, newer)
            enforced = [(number, key) for number, key, _, _, is_enforced in entries if is_enforced]
            cursor.execute(_REMOVE_DISPLACED, _columns(enforced, 2))
            cursor.execute(_ADD_ENTRIES, (self._collection.tenant_id, *_columns(entries, 5)))


async def _install_newest(tenant_id: UUID, name: str) -> None:
    await install(await facts.find(tenant_id, name, fresh=True))


def _entries(
    indexes: Sequence[Index], rows: Sequence[_CopiedRow]
) -> list[tuple[int, bytes, bytes, bool, bool]]:
    """Return entries: index, key, document's key, whether they sort, whether they are enforced."""
    definition = Definition(
        None, [(index.number, fields_of(index), index.unique) for index in indexes]
    )
    entries = []
    for row in rows:
        if row.body is None:
            continue
        try:
            own = definition.entries(row.body)
        except QueryError as error:
            raise MoveFailed(f"A document cannot be indexed: {error.detail}.") from None
        entries += [
            (number, key, row.key, ordering, enforced) for number, key, ordering, enforced in own
        ]
    return entries


def _columns(rows: Sequence[tuple[object, ...]], width: int) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]
