"""A collection's documents, as whoever writes all of them reads them again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from uuid import UUID

from documents.store import facts, reads
from documents.store.database import pool, scope
from documents.store.keys import BEHIND_ALL
from foundation.postgres import Statement
from foundation.postgres.session import Oid, int8
from rillbase_native import Value, id_key
from sources.mapping.shape import ID, Column, Fields

PAGE_DOCUMENTS = 1_000

_PAGE = Statement(
    "SELECT key, body FROM documents_document WHERE collection_id = $1 AND key > $2 AND key < $3 "
    "AND body IS NOT NULL ORDER BY key LIMIT $4",
    (Oid.UUID, Oid.BYTEA, Oid.BYTEA, Oid.INT8),
)


def key_of(identity: str) -> bytes:
    """Return the key of the document with an `_id` in Extended JSON."""
    return id_key(Value.parse(identity.encode()))


async def bodies(tenant_id: UUID, collection: str, identities: Iterable[str]) -> dict[str, bytes]:
    """Return the documents that are there, by `_id`."""
    keys = {key_of(identity): identity for identity in identities}
    found = await reads.get(tenant_id, collection, list(keys), None, 0) if keys else {}
    return {keys[key]: document.body for key, document in found.items()}


def fields_of(body: bytes, columns: Sequence[Column]) -> Fields:
    """Return what a document has for the columns that made it, as Extended JSON."""
    document = Value.from_bson(body)
    return [_member(document, column.name) for column in columns]


def _member(document: Value, name: str) -> str:
    found = document.get(name)
    return "null" if found is None else found.ejson(canonical=True).decode()


async def identities(tenant_id: UUID, collection: str) -> AsyncIterator[list[object]]:
    """Yield the `_id`s of all documents, page by page, as canonical Extended JSON."""
    known = await facts.find(tenant_id, collection)
    after = b""
    while True:
        parameters = (known.id.bytes, after, BEHIND_ALL, int8(PAGE_DOCUMENTS))
        async with pool().session() as session:
            _, page = await session.run([scope(tenant_id), (_PAGE, parameters)])
        if not page.rows:
            return
        found = [Value.from_bson(page.bytes(row, 1)).get(ID) for row in range(page.rows)]
        yield [json.loads(value.ejson(canonical=True)) for value in found if value is not None]
        after = page.bytes(page.rows - 1, 0)
