"""Reads the existing documents in one snapshot, while writes continue.

Writes that the snapshot does not see are appended to the streams after it was taken, so a reader
that has read the streams up to then, and continues, misses nothing. A document in both is sent
twice and counted once, by its version. Tombstones are read, too: an older image of a deleted
document may still arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import psycopg
from psycopg import IsolationLevel

from documents.store.bodies import carried, omitted_size
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


def read(collection_id: UUID) -> Iterator[list[Document]]:
    """Yield all documents of a collection, in blocks. Must run in a separate thread."""
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
                    yield block
                    block, size = [], 0
            yield block


def _body(connection: psycopg.Connection, collection_id: UUID, key: bytes) -> bytes | None:
    row = connection.execute(_BODY, (collection_id, key), binary=True).fetchone()
    return None if row is None else row[0]
