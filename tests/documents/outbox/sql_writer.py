"""Writes documents and outbox rows as the store does, by SQL, without publishing them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

import psycopg

_DOCUMENT = """
INSERT INTO documents_document AS d
(tenant_id, collection_id, key, key_hash, version, body, created_at, updated_at)
VALUES (%(tenant)s, %(collection)s, %(key)s, %(hash)s, 1, %(body)s, now(), now())
ON CONFLICT (collection_id, key) DO UPDATE
SET version = d.version + 1, body = excluded.body, updated_at = now()
RETURNING version
"""
_OUTBOX = """
INSERT INTO documents_outbox
(tenant_id, collection_id, key, key_hash, version, deleted_id, rules_version, batch_hashes)
VALUES (%(tenant)s, %(collection)s, %(key)s, %(hash)s, %(version)s, %(deleted)s, 1, %(batch)s)
RETURNING xid::text
"""


class SqlWriter:
    """A collection of a tenant that no other test uses."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.tenant, self.collection = uuid4(), uuid4()

    def write(self, *keys: int, body: bytes | None = b"body", batch: bool = False) -> list[int]:
        """Write the documents in one transaction; return their versions. None deletes."""
        with self.transaction() as open_one:
            return [open_one.write(key, body, keys if batch else None) for key in keys]

    @contextmanager
    def transaction(self) -> Iterator[OpenTransaction]:
        with psycopg.connect(self.url) as connection:
            yield OpenTransaction(connection, self.tenant, self.collection)


class OpenTransaction:
    """Commits when its block ends."""

    def __init__(self, connection: psycopg.Connection, tenant: UUID, collection: UUID) -> None:
        self._connection = connection
        self._tenant, self._collection = tenant, collection
        self.xid = 0

    def write(self, key: int, body: bytes | None, batch: tuple[int, ...] | None = None) -> int:
        values: dict[str, object] = {
            "tenant": self._tenant,
            "collection": self._collection,
            "key": key_bytes(key),
            "hash": key,
            "body": body,
            "deleted": b"the id" if body is None else None,
            "batch": None if batch is None else list(batch),
        }
        record = self._connection.execute(_DOCUMENT, values).fetchone()
        assert record is not None
        version = int(record[0])
        row = self._connection.execute(_OUTBOX, {**values, "version": version}).fetchone()
        assert row is not None
        self.xid = int(row[0])
        return version

    def set_updated_at(self, time_us: int) -> None:
        """Change the times at which the collection's documents were written."""
        self._connection.execute(
            "UPDATE documents_document SET updated_at = "
            "to_timestamp(0) + %s * interval '1 microsecond' WHERE collection_id = %s",
            (time_us, self._collection),
        )


def key_bytes(key: int) -> bytes:
    return b"key %d" % key
