"""The SQL of a group of writes. Arrays, which the native code packs, carry all documents of one
collection at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from documents.store import bodies
from documents.store.facts import CollectionFacts
from foundation.postgres import Statement
from foundation.postgres.arrays import int4s
from foundation.postgres.session import Oid, Step, int8, timestamptz
from rillbase_native import Changes

CHECK = Statement(
    "SELECT write_version, version_floor, rules_version, transaction_timestamp() "
    "FROM documents_collection WHERE id = $1 AND state = 'active'",
    (Oid.UUID,),
)
#: The same as an assertion, whose reply the writes need not wait for: without such a row, the
#: division by zero aborts the transaction.
_UNCHANGED = (
    "SELECT pg_current_xact_id(), transaction_timestamp(), 1 / count(*) "
    "FROM documents_collection WHERE id = $1 AND state = 'active' "
    "AND write_version = $2 AND version_floor = $3"
)
_ASSERT = Statement(_UNCHANGED, (Oid.UUID, Oid.INT8, Oid.INT8))
#: In the order of the keys, so that concurrent groups lock in the same order.
LOCK_ROWS = Statement(
    f"SELECT key, version, created_at, {bodies.carried('body', '$3')} FROM documents_document "  # noqa: S608
    "WHERE collection_id = $1 AND key = ANY($2) ORDER BY key FOR UPDATE",
    (Oid.UUID, Oid.BYTEA_ARRAY, Oid.INT4),
)
_INSERT = Statement(
    "INSERT INTO documents_document "
    "(tenant_id, collection_id, key, key_hash, version, body, created_at, updated_at) "
    "SELECT $1, $2, i.key, i.key_hash, i.version, i.body, now(), now() "
    "FROM unnest($3::bytea[], $4::int4[], $5::int8[], $6::bytea[]) "
    "AS i(key, key_hash, version, body)",
    (
        Oid.UUID,
        Oid.UUID,
        Oid.BYTEA_ARRAY,
        Oid.INT4_ARRAY,
        Oid.INT8_ARRAY,
        Oid.BYTEA_ARRAY,
    ),
)
#: The assertion, and everything that new documents of a collection write, for the cost of sending
#: one statement instead of four.
_INSERT_UNCHANGED = Statement(
    "WITH inserted AS (INSERT INTO documents_document "  # noqa: S608 -- a constant
    "(tenant_id, collection_id, key, key_hash, version, body, created_at, updated_at) "
    "SELECT $4, $1, i.key, i.key_hash, i.version, i.body, $9, $9 "
    "FROM unnest($5::bytea[], $6::int4[], $7::int8[], $8::bytea[]) "
    "AS i(key, key_hash, version, body)), "
    "announced AS (INSERT INTO documents_outbox "
    "(tenant_id, collection_id, key, key_hash, version, rules_version, batch_hashes) "
    "SELECT $4, $1, i.key, i.key_hash, i.version, $10, $11 "
    "FROM unnest($5::bytea[], $6::int4[], $7::int8[]) AS i(key, key_hash, version)), "
    "entered AS (INSERT INTO documents_indexentry "
    "(tenant_id, index_number, key, document_key, ordering, enforced) "
    "SELECT $4, i.* FROM unnest($12::int8[], $13::bytea[], $14::bytea[], $15::bool[], "
    "$16::bool[]) AS i(number, key, document_key, ordering, enforced)) " + _UNCHANGED,
    (
        Oid.UUID,
        Oid.INT8,
        Oid.INT8,
        Oid.UUID,
        Oid.BYTEA_ARRAY,
        Oid.INT4_ARRAY,
        Oid.INT8_ARRAY,
        Oid.BYTEA_ARRAY,
        Oid.TIMESTAMPTZ,
        Oid.INT8,
        Oid.INT4_ARRAY,
        Oid.INT8_ARRAY,
        Oid.BYTEA_ARRAY,
        Oid.BYTEA_ARRAY,
        Oid.BOOL_ARRAY,
        Oid.BOOL_ARRAY,
    ),
)
_NO_ENTRIES = (None,) * 5
#: Violated if another transaction has inserted one of the keys in the meantime.
DOCUMENT_KEY_CONSTRAINT = "documents_document_pkey"
_UPDATE = Statement(
    "UPDATE documents_document d SET version = i.version, body = i.body, "
    "created_at = coalesce(i.created_at, now()), updated_at = now() "
    "FROM unnest($2::bytea[], $3::int8[], $4::bytea[], $5::timestamptz[]) "
    "AS i(key, version, body, created_at) WHERE d.collection_id = $1 AND d.key = i.key",
    (
        Oid.UUID,
        Oid.BYTEA_ARRAY,
        Oid.INT8_ARRAY,
        Oid.BYTEA_ARRAY,
        Oid.TIMESTAMPTZ_ARRAY,
    ),
)
_OUTBOX = Statement(
    "INSERT INTO documents_outbox (tenant_id, collection_id, key, key_hash, version, deleted_id, "
    "rules_version, batch_hashes) "
    "SELECT $1, $2, i.key, i.key_hash, i.version, i.deleted_id, $7, $8 "
    "FROM unnest($3::bytea[], $4::int4[], $5::int8[], $6::bytea[]) "
    "AS i(key, key_hash, version, deleted_id)",
    (
        Oid.UUID,
        Oid.UUID,
        Oid.BYTEA_ARRAY,
        Oid.INT4_ARRAY,
        Oid.INT8_ARRAY,
        Oid.BYTEA_ARRAY,
        Oid.INT8,
        Oid.INT4_ARRAY,
    ),
)
_REMOVE_ENTRIES = Statement(
    "DELETE FROM documents_indexentry e "
    "USING unnest($1::int8[], $2::bytea[], $3::bytea[]) AS i(number, key, document_key) "
    "WHERE e.index_number = i.number AND e.key = i.key AND e.document_key = i.document_key",
    (Oid.INT8_ARRAY, Oid.BYTEA_ARRAY, Oid.BYTEA_ARRAY),
)
_ADD_ENTRIES = Statement(
    "INSERT INTO documents_indexentry "
    "(tenant_id, index_number, key, document_key, ordering, enforced) "
    "SELECT $1, i.* FROM unnest($2::int8[], $3::bytea[], $4::bytea[], $5::bool[], $6::bool[]) "
    "AS i(number, key, document_key, ordering, enforced)",
    (
        Oid.UUID,
        Oid.INT8_ARRAY,
        Oid.BYTEA_ARRAY,
        Oid.BYTEA_ARRAY,
        Oid.BOOL_ARRAY,
        Oid.BOOL_ARRAY,
    ),
)
_RECORD_CHANGES = Statement(
    "INSERT INTO documents_movechange (tenant_id, collection_id, key, version) "
    "SELECT $1, $2, i.key, i.version FROM unnest($3::bytea[], $4::int8[]) AS i(key, version) "
    "ON CONFLICT (collection_id, key) DO UPDATE SET version = excluded.version",
    (Oid.UUID, Oid.UUID, Oid.BYTEA_ARRAY, Oid.INT8_ARRAY),
)
TRANSACTION_ID = Statement("SELECT pg_current_xact_id()")
#: Enforced entries of other documents that conflict.
_CONFLICTING = Statement(
    "SELECT e.index_number, e.key, x.collection_id, e.document_key "
    "FROM unnest($1::int8[], $2::bytea[], $3::bytea[]) "
    "AS i(number, key, document_key) "
    "JOIN documents_indexentry e ON e.index_number = i.number AND e.key = i.key "
    "AND e.enforced AND e.document_key <> i.document_key "
    "JOIN documents_index x ON x.number = i.number",
    (Oid.INT8_ARRAY, Oid.BYTEA_ARRAY, Oid.BYTEA_ARRAY),
)
_BODY = Statement(
    "SELECT body FROM documents_document WHERE collection_id = $1 AND key = $2",
    (Oid.UUID, Oid.BYTEA),
)


def written(tenant_id: UUID, collection_id: bytes, number: int, changes: Changes) -> list[Step]:
    """Write the documents of a collection, with and without existing rows."""
    steps: list[Step] = []
    if (inserted := changes.inserted(number)) is not None:
        steps.append((_INSERT, (tenant_id.bytes, collection_id, *inserted)))
    if (updated := changes.updated(number)) is not None:
        steps.append((_UPDATE, (collection_id, *updated)))
    return steps


def announced(
    tenant_id: UUID,
    collection_id: bytes,
    number: int,
    changes: Changes,
    rules_version: int,
    batch_hashes: Sequence[int] | None,
) -> list[Step]:
    """Insert the outbox rows of a collection's changes, in the same transaction."""
    rows = changes.announced(number)
    if rows is None:
        return []
    hashes = None if batch_hashes is None else int4s(batch_hashes)
    return [(_OUTBOX, (tenant_id.bytes, collection_id, *rows, int8(rules_version), hashes))]


def recorded_changes(collections: Sequence[CollectionFacts], changes: Changes) -> list[Step]:
    """Record what was changed of collections that move to the other backend."""
    steps: list[Step] = []
    for number, collection in enumerate(collections):
        rows = changes.announced(number) if collection.is_moving else None
        if rows is not None:
            keys, _, versions, _ = rows
            place = (collection.tenant_id.bytes, collection.raw)
            steps.append((_RECORD_CHANGES, (*place, keys, versions)))
    return steps


def entries(tenant_id: UUID, changes: Changes) -> list[Step]:
    """Update the entries of all indexes."""
    steps: list[Step] = []
    if (removed := changes.removed()) is not None:
        steps.append((_REMOVE_ENTRIES, removed))
    if (added := changes.added()) is not None:
        steps.append((_ADD_ENTRIES, (tenant_id.bytes, *added)))
    return steps


def conflicting_entries(places: Sequence[bytes]) -> Step:
    """Return the enforced entries with the same keys that other documents have."""
    return _CONFLICTING, places


def body(collection_id: bytes, key: bytes) -> Step:
    return _BODY, (collection_id, key)


def lock_rows(collection_id: bytes, keys: bytes, largest_body: bytes) -> Step:
    return LOCK_ROWS, (collection_id, keys, largest_body)


def check(collection_id: bytes) -> Step:
    return CHECK, (collection_id,)


def insert_unchanged(
    collections: Sequence[CollectionFacts],
    changes: Changes,
    now_us: int,
    batch_hashes: Sequence[int] | None,
) -> list[Step]:
    """Assert that each collection is as it was when the changes, all of them new documents of the
    time `now_us`, were decided; write the documents, their outbox rows and entries.
    """
    steps: list[Step] = []
    now = timestamptz(now_us)
    hashes = None if batch_hashes is None else int4s(batch_hashes)
    # Those of all collections are written together.
    new_entries = changes.added() or _NO_ENTRIES
    for number, collection in enumerate(collections):
        known = collection.raw, int8(collection.write_version), int8(collection.version_floor)
        rows = changes.inserted(number)
        if rows is None:
            steps.append((_ASSERT, known))
            continue
        announced = now, int8(collection.rules_version), hashes
        new = (*known, collection.tenant_id.bytes, *rows, *announced, *new_entries)
        steps.append((_INSERT_UNCHANGED, new))
        new_entries = _NO_ENTRIES
    return steps
