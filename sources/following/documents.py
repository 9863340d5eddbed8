"""Reads the documents of a collection that a source writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from uuid import UUID

from documents.store import bodies, facts, reads
from documents.store.database import begin_snapshot, commit, pool
from documents.store.facts import CollectionFacts
from documents.store.keys import BEHIND_ALL
from foundation.postgres import Statement
from foundation.postgres.session import Oid, int8
from rillbase_native import Value, id_key
from sources.mapping.shape import ID, Fields, SourceColumn

PAGE_DOCUMENTS = 1_000

_PAGE = Statement(
    f"SELECT key, {bodies.carried('body', '$5')} FROM documents_document "  # noqa: S608
    "WHERE collection_id = $1 AND key > $2 AND key < $3 "
    "AND body IS NOT NULL ORDER BY key LIMIT $4",
    (Oid.UUID, Oid.BYTEA, Oid.BYTEA, Oid.INT8, Oid.INT4),
)


def key_of(identity: str) -> bytes:
    """Return the key of the document with an `_id` in Extended JSON."""
    return id_key(Value.parse(identity.encode()))


async def read(tenant_id: UUID, collection: str, identities: Iterable[str]) -> dict[str, bytes]:
    """Return the existing documents, by `_id`."""
    keys = {key_of(identity): identity for identity in identities}
    documents = await reads.get(tenant_id, collection, list(keys), None, 0) if keys else {}
    return {keys[key]: document.body for key, document in documents.items()}


def fields_of(body: bytes, columns: Sequence[SourceColumn]) -> Fields:
    """Return a document's values for the source's columns, as Extended JSON."""
    document = Value.from_bson(body)
    return [_member(document, column.name) for column in columns]


def _member(document: Value, name: str) -> str:
    value = document.get(name)
    return "null" if value is None else value.ejson(canonical=True).decode()


async def identities(tenant_id: UUID, collection: str) -> AsyncIterator[list[object]]:
    """Yield the `_id`s of all documents, page by page, as canonical Extended JSON."""
    collection_facts = await facts.find(tenant_id, collection)
    after = b""
    while True:
        page = await _page(collection_facts, after)
        if not page:
            return
        present = [identity for _, identity in page if identity is not None]
        yield [json.loads(identity.ejson(canonical=True)) for identity in present]
        after = page[-1][0]


async def _page(collection: CollectionFacts, after: bytes) -> list[tuple[bytes, Value | None]]:
    """Return the next keys and `_id`s."""
    limits = (int8(PAGE_DOCUMENTS), bodies.largest_carried(PAGE_DOCUMENTS))
    step = (_PAGE, (collection.raw, after, BEHIND_ALL, *limits))
    page = list[tuple[bytes, Value | None]]()
    async with pool().session(collection.tenant_id) as session:
        *_, result = await session.run([*begin_snapshot(collection.tenant_id), step])
        cells = [(result.bytes(row, 0), result.bytes(row, 1)) for row in range(result.rows)]
        async for part, omitted in bodies.read_omitted(session, collection.raw, cells):
            page += [
                (key, Value.from_bson(omitted.get(key, body)).get(ID)) for key, body in cells[part]
            ]
        await session.run([commit()])
    return page
