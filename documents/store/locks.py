"""The collection's lock: writers of documents and changers of the collection exclude each other.

Writers of documents hold it shared, from before reading the collection's row until the commit. A
change to what writers must know (schema, rules, indexes, state, version floor) holds it exclusively
and raises `write_version`. PostgreSQL keeps the lock in memory, so writers of one collection do not
write to a common row.
"""

from __future__ import annotations

from uuid import UUID

from django.db import connections

from foundation.ids import text_of
from foundation.postgres import Statement
from foundation.postgres.session import Oid, Step, int4

#: The first of the two numbers that name an advisory lock: "RBcL" in ASCII.
LOCK_CLASS = 0x5242634C

_SHARED = Statement("SELECT pg_advisory_xact_lock_shared($1, hashtext($2))", (Oid.INT4, Oid.TEXT))
_SCOPED_SHARED = Statement(
    "SELECT set_config('rillbase.tenant', $1, true), set_config('rillbase.user', '', true), "
    "pg_advisory_xact_lock_shared($2, hashtext($3))",
    (Oid.TEXT, Oid.INT4, Oid.TEXT),
)


def scoped_shared(tenant_id: UUID, collection_id: UUID) -> Step:
    """Set the tenant and lock its collection, as `scope` and `shared` do, in one statement."""
    tenant, (_, parameters) = text_of(tenant_id).encode(), shared(collection_id)
    return _SCOPED_SHARED, (tenant, *parameters)


def shared(collection_id: UUID) -> Step:
    """Lock for writing documents, until the transaction ends."""
    return _SHARED, (int4(LOCK_CLASS), text_of(collection_id).encode())


def lock_shared(collection_id: UUID, using: str = "default") -> None:
    """Lock as writers do, until Django's transaction on `using` ends."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock_shared(%s, hashtext(%s))",
            (LOCK_CLASS, str(collection_id)),
        )


def lock_exclusively(collection_id: UUID, using: str = "default") -> None:
    """Lock exclusively to change the collection, until Django's transaction on `using` ends."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (LOCK_CLASS, str(collection_id))
        )
