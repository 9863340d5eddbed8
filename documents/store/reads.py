"""Documents by id: one round trip, which is one transaction, and further ones for large bodies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from documents.store import bodies, facts
from documents.store.access import CallerAccess, access_of
from documents.store.database import pool, scope
from documents.store.facts import CollectionFacts, ConcurrentDefinitionChange
from documents.store.large_results import ReadAllowance, in_turn
from documents.store.node.snapshot import NodeSnapshot
from documents.store.stored_document import StoredDocument
from foundation.postgres import PostgresSession, Statement, StatementResult
from foundation.postgres.arrays import byteas
from foundation.postgres.session import Oid
from tenants.principals import Principal

ATTEMPTS = 5

CHECK = Statement(
    "SELECT write_version FROM documents_collection WHERE id = $1 AND state = 'active'",
    (Oid.UUID,),
)
#: Bodies are read with `documents.store.bodies`.
BY_KEY = Statement(
    f"SELECT key, version, created_at, updated_at, {bodies.carried('body', '$3')} "  # noqa: S608
    "FROM documents_document WHERE collection_id = $1 AND key = ANY($2) AND body IS NOT NULL",
    (Oid.UUID, Oid.BYTEA_ARRAY, Oid.INT4),
)


def row(result: StatementResult, number: int) -> StoredDocument:
    """Read a row of (key, version, created_at, updated_at, body)."""
    return StoredDocument(
        result.bytes(number, 0),
        result.integer(number, 1),
        result.time_ms(number, 2),
        result.time_ms(number, 3),
        result.bytes(number, 4),
    )


def is_current(check: StatementResult, collection: CollectionFacts) -> bool:
    """Return whether the collection is unchanged."""
    return check.rows == 1 and check.integer(0, 0) == collection.write_version


async def get(
    tenant_id: UUID, name: str, keys: Sequence[bytes], principal: Principal | None, now_ms: int
) -> dict[bytes, StoredDocument]:
    """Return the documents that exist and that the caller may read; None: an internal caller."""
    return await in_turn(tenant_id, partial(_get, tenant_id, name, keys, principal, now_ms))


async def _get(
    tenant_id: UUID,
    name: str,
    keys: Sequence[bytes],
    principal: Principal | None,
    now_ms: int,
    allowance: ReadAllowance,
) -> dict[bytes, StoredDocument]:
    for attempt in range(ATTEMPTS):
        collection = await facts.find(tenant_id, name, fresh=attempt > 0)
        documents: list[StoredDocument] | None
        if collection.is_native:
            parts = NodeSnapshot().documents(collection, keys, allowance.check)
            documents = [document async for part in parts for document in part]
        else:
            async with pool().session(tenant_id) as session:
                documents = await _read(session, collection, keys, allowance)
        if documents is not None:
            access = None if principal is None else access_of(collection, principal)
            return _readable(access, documents, now_ms)
    raise ConcurrentDefinitionChange


async def _read(
    session: PostgresSession,
    collection: CollectionFacts,
    keys: Sequence[bytes],
    allowance: ReadAllowance,
) -> list[StoredDocument] | None:
    """Return the documents that exist; None: the collection has changed."""
    largest = bodies.largest_carried(len(keys))
    documents = await _documents(session, collection, keys, largest)
    if documents is None:
        return None
    allowance.check(sum(bodies.size_bytes(document.body) for document in documents))
    omitted = [(document.key, document.body) for document in documents if document.is_omitted]
    documents = [document for document in documents if not document.is_omitted]
    # Each part is read in one snapshot, so version and body belong together.
    for part in bodies.parts(omitted):
        more = await _documents(session, collection, part.omitted, bodies.ANY_SIZE)
        if more is None:
            return None
        documents += more
    return documents


async def _documents(
    session: PostgresSession,
    collection: CollectionFacts,
    keys: Sequence[bytes],
    largest_body: bytes,
) -> list[StoredDocument] | None:
    _, check, result = await session.run(
        [
            scope(collection.tenant_id),
            (CHECK, (collection.id.bytes,)),
            (BY_KEY, (collection.id.bytes, byteas(keys), largest_body)),
        ]
    )
    if not is_current(check, collection):
        return None
    return [row(result, number) for number in range(result.rows)]


def _readable(
    access: CallerAccess | None, documents: Sequence[StoredDocument], now_ms: int
) -> dict[bytes, StoredDocument]:
    rule = access.require("read") if access is not None else None
    return {
        document.key: document
        for document in documents
        if rule is None or rule.matches(document.body, now_ms)
    }
