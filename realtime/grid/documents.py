"""Reads the documents for a node that is rebuilt, in one snapshot. A node requests the collections
that its queries read, and the documents whose key's hash belongs to its partition. They come as
PostgreSQL's binary copy, in which the native loop finds the rows, so that no document becomes an
object here; the storage node returns rows in the same form. The role is the relay's, or the storage
node's administrator: it may read all tenants' documents; they stay separate, since each query
belongs to one tenant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
from psycopg import IsolationLevel, sql

from documents.backend import Backend
from documents.outbox.entries import TransactionSnapshot
from documents.store.node.copies import copy_snapshot
from foundation.database_roles import DatabaseRole
from foundation.environment import environment

#: Rows arrive one by one; the native loop is called with blocks of this size.
BLOCK_BYTES = 256 * 1024
#: A pass over all documents may take long; a client that has died is noticed by the server.
_SETTINGS = "-c statement_timeout=10min -c idle_in_transaction_session_timeout=60s"

_COPY = sql.SQL(
    "COPY (SELECT collection_id, key, version, created_at, updated_at, body "
    "FROM documents_document WHERE collection_id = ANY({collections}::uuid[]) "
    "AND body IS NOT NULL AND key_hash % {partitions} = {partition}) "
    "TO STDOUT (FORMAT BINARY)"
)
_COLLECTIONS = (
    "SELECT id, tenant_id, rules_version FROM documents_collection WHERE id = ANY(%s::uuid[])"
)
#: Before and after the rows of a copy.
_HEADER, _TRAILER = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"

#: Collections, and the remainder and the divisor of keys' hashes. Yields the snapshot with the
#: versions of access rules, as text, then blocks of the copy.
DocumentRead = Callable[[list[bytes], int, int], Iterator[str | bytes]]


def reader_of(backend: Backend) -> DocumentRead:
    """Return what reads the documents of a backend."""
    return read_from_node if backend == Backend.NATIVE else read


def read(collections: list[bytes], partition: int, partitions: int) -> Iterator[str | bytes]:
    """Yield the snapshot with the versions of access rules, as text, then blocks of the copy.

    A snapshot that sees a write also sees the rules under which it was made.
    """
    with _connected() as connection:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        snapshot = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
        if snapshot is None:
            raise psycopg.DataError("the database has no snapshot")
        identities = [str(UUID(bytes=collection)) for collection in collections]
        rules = connection.execute(_COLLECTIONS, [identities]).fetchall()
        yield _opening(str(snapshot[0]), rules)
        query = _COPY.format(
            collections=sql.Literal(identities),
            partitions=sql.Literal(partitions),
            partition=sql.Literal(partition),
        )
        with connection.cursor() as cursor, cursor.copy(query) as copy:
            yield from _in_blocks(bytes(row) for row in copy)


def read_from_node(
    collections: list[bytes], partition: int, partitions: int
) -> Iterator[str | bytes]:
    """Do the same in the storage node. The rules are read later than the snapshot: they are those
    under which its documents were written, or newer ones.
    """
    with copy_snapshot() as snapshot:
        identities = [str(UUID(bytes=collection)) for collection in collections]
        with _connected() as connection:
            rows = connection.execute(_COLLECTIONS, [identities]).fetchall()
        yield _opening(str(TransactionSnapshot.up_to(snapshot.position)), rows)
        yield _HEADER
        for collection_id, tenant_id, _ in rows:
            yield from snapshot.rows(tenant_id, collection_id, partition, partitions)
        yield _TRAILER


def _opening(snapshot: str, rows: list[tuple[UUID, UUID, int]]) -> str:
    rules = [f"{collection_id.hex}={version}" for collection_id, _, version in rows]
    return " ".join([snapshot, *rules])


def _connected() -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(
        environment().role_url(DatabaseRole.RELAY),
        options=_SETTINGS,
        application_name="rillbase:grid",
        connect_timeout=5,
    )


def _in_blocks(rows: Iterator[bytes]) -> Iterator[bytes]:
    """Join rows, so that one call handles many of them."""
    block, size = list[bytes](), 0
    for row in rows:
        block.append(row)
        size += len(row)
        if size >= BLOCK_BYTES:
            yield b"".join(block)
            block, size = [], 0
    yield b"".join(block)
