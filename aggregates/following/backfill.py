"""Reads the existing documents in one snapshot, while writes continue.

Writes that the snapshot does not see are appended to the streams after it was taken, so a reader
that has read the streams up to then, and continues, misses nothing. A document in both is sent
twice and counted once, by its version.

An older image of a deleted document may still arrive. PostgreSQL's tombstones are read, too, so it
is skipped. The storage node returns no tombstones, but its feed appends changes in the order of its
log, and repeats only those after its last tick. So once a tick covers the snapshot, every image of
a document that the snapshot has as deleted has been followed by the image of its deletion: the
documents are complete from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

import psycopg
from psycopg import IsolationLevel

from documents.backend import Backend
from documents.store.bodies import carried, omitted_size
from documents.store.node.copies import copy_snapshot, documents_of
from foundation.database_roles import DatabaseRole
from foundation.environment import environment

#: Documents per block, and their total bytes.
ROWS, BLOCK_BYTES = 500, 4 * 1024 * 1024
#: A pass over all documents may take long.
_SETTINGS = "-c statement_timeout=60min -c idle_in_transaction_session_timeout=10min"
#: Rows are fetched in batches; bodies larger than this are read one at a time.
_CARRIED_BYTES = 16 * 1024
_DOCUMENTS = (
    f"SELECT key, version, {carried('body', str(_CARRIED_BYTES))} FROM documents_document "  # noqa: S608
    "WHERE collection_id = %s"
)
_BODY = "SELECT body FROM documents_document WHERE collection_id = %s AND key = %s"

#: Key, version, and BSON or None for a deleted document.
Document = tuple[bytes, int, bytes | None]


class DocumentBlock(NamedTuple):
    """Some documents of a collection."""

    documents: Sequence[Document]
    #: The position of the storage node's log that the streams must have reached before the
    #: documents are complete; 0: any.
    complete_at: int = 0


def read(backend: Backend, tenant_id: UUID, collection_id: UUID) -> Iterator[DocumentBlock]:
    """Yield all documents of a collection, in blocks. Must run in a separate thread."""
    if backend == Backend.NATIVE:
        return _read_from_node(tenant_id, collection_id)
    return _read_from_postgres(collection_id)


def _read_from_node(tenant_id: UUID, collection_id: UUID) -> Iterator[DocumentBlock]:
    with copy_snapshot() as snapshot:
        yield DocumentBlock((), snapshot.position)
        for rows in snapshot.rows(tenant_id, collection_id):
            documents = [(key, version, body) for key, version, _, _, body in documents_of(rows)]
            for start in range(0, len(documents), ROWS):
                yield DocumentBlock(documents[start : start + ROWS], snapshot.position)


def _read_from_postgres(collection_id: UUID) -> Iterator[DocumentBlock]:
    with psycopg.connect(
        environment().role_url(DatabaseRole.RELAY),
        options=_SETTINGS,
        application_name="rillbase:views",
        connect_timeout=5,
    ) as connection:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        with connection.cursor(name="documents", binary=True) as cursor:
            cursor.itersize = ROWS
            cursor.execute(_DOCUMENTS, (collection_id,))
            block, size = list[Document](), 0
            for key, version, cell in cursor:
                body = cell
                if cell is not None and omitted_size(cell):
                    body = _body(connection, collection_id, key)
                block.append((key, version, body))
                size += len(body or b"")
                if len(block) >= ROWS or size >= BLOCK_BYTES:
                    yield DocumentBlock(block)
                    block, size = [], 0
            yield DocumentBlock(block)


def _body(connection: psycopg.Connection, collection_id: UUID, key: bytes) -> bytes | None:
    row = connection.execute(_BODY, (collection_id, key), binary=True).fetchone()
    return None if row is None else row[0]
