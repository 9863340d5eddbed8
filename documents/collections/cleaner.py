"""Removes the collections and documents of a tenant that is being deleted."""

from __future__ import annotations

import math
from uuid import UUID

from django.db import connections, transaction

from documents.collections.removal import ALIAS, BATCH_ROWS, remove_collection
from documents.models import Collection
from documents.store.locks import lock_exclusively

_OUTBOX = (
    "DELETE FROM documents_outbox WHERE (tableoid, ctid) IN ("
    "SELECT tableoid, ctid FROM documents_outbox WHERE tenant_id = %s LIMIT %s)"
)


def clean(tenant_id: UUID) -> None:
    """Remove collections with their contents, and changes that are still to be published."""
    collections = Collection.unscoped.using(ALIAS).filter(tenant_id=tenant_id)
    for collection_id in collections.values_list("pk", flat=True):
        _stop_writers(collection_id)
        remove_collection(collection_id, deadline=math.inf)
    while _clean_outbox(tenant_id) == BATCH_ROWS:
        pass


def _stop_writers(collection_id: UUID) -> None:
    """Wait for running writers to finish, and prevent others from starting."""
    with transaction.atomic(using=ALIAS):
        lock_exclusively(collection_id, ALIAS)
        Collection.unscoped.using(ALIAS).filter(pk=collection_id).update(
            state=Collection.State.DROPPING
        )


def _clean_outbox(tenant_id: UUID) -> int:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(_OUTBOX, (tenant_id, BATCH_ROWS))
        return int(cursor.rowcount)
