"""Documents by id: one round trip, which is one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from documents.store import facts
from documents.store.access import Access, access_of
from documents.store.database import pool, scope
from documents.store.facts import CollectionFacts
from foundation.errors import Unavailable
from foundation.postgres import Result, Statement
from foundation.postgres.arrays import byteas
from foundation.postgres.session import Oid
from tenants.principals import Principal

ATTEMPTS = 5

CHECK = Statement(
    "SELECT write_version FROM documents_collection WHERE id = $1 AND state = 'active'",
    (Oid.UUID,),
)
BY_KEY = Statement(
    "SELECT key, version, created_at, updated_at, body FROM documents_document "
    "WHERE collection_id = $1 AND key = ANY($2) AND body IS NOT NULL",
    (Oid.UUID, Oid.BYTEA_ARRAY),
)


class KeptChanging(Unavailable):
    """A collection was changed again and again while it was to be read."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document with its current version."""

    key: bytes
    version: int
    created_ms: int
    updated_ms: int
    body: bytes


def row(result: Result, number: int) -> StoredDocument:
    """Read a row of (key, version, created_at, updated_at, body)."""
    return StoredDocument(
        result.bytes(number, 0),
        result.integer(number, 1),
        result.time_ms(number, 2),
        result.time_ms(number, 3),
        result.bytes(number, 4),
    )


def is_current(check: Result, collection: CollectionFacts) -> bool:
    """Tell whether the collection is still as it was known."""
    return check.rows == 1 and check.integer(0, 0) == collection.write_version


async def get(
    tenant_id: UUID, name: str, keys: Sequence[bytes], principal: Principal | None, now_ms: int
) -> dict[bytes, StoredDocument]:
    """Return the documents that exist and that the caller may read; None: one of our own parts."""
    for attempt in range(ATTEMPTS):
        collection = await facts.find(tenant_id, name, fresh=attempt > 0)
        async with pool().session() as session:
            _, check, result = await session.run(
                [
                    scope(tenant_id),
                    (CHECK, (collection.id.bytes,)),
                    (BY_KEY, (collection.id.bytes, byteas(keys))),
                ]
            )
        if is_current(check, collection):
            found = [row(result, number) for number in range(result.rows)]
            access = None if principal is None else access_of(collection, principal)
            return _readable(access, found, now_ms)
    raise KeptChanging


def _readable(
    access: Access | None, found: Sequence[StoredDocument], now_ms: int
) -> dict[bytes, StoredDocument]:
    rule = access.require("read") if access is not None else None
    return {
        document.key: document
        for document in found
        if rule is None or rule.matches(document.body, now_ms)
    }
