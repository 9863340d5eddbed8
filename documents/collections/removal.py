"""Removes what dropped collections and indexes leave behind, in batches, in the background.

It is no longer visible: reads and writes use active collections and indexes only, and a writer that
was running has committed before the drop took the lock. If a run is interrupted, the next one
continues. A failed index is emptied as well, but its row stays to report the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from uuid import UUID

from django.db import connections, transaction
from django.db.models import Q

from documents.backend import Backend
from documents.collections.actions import DROP_INDEX_TASK, DROP_TASK
from documents.collections.moves import REMOVE_COPY_TASK
from documents.collections.node_upkeep import drop_from_node
from documents.models import Collection, ImportJob, Index
from documents.store.locks import lock_exclusively
from foundation.scope import scoped
from foundation.tasks import run_after_commit, task

ALIAS = "relay"
BATCH_ROWS = 5_000
#: A task works for this long, then yields to others.
SLICE_S = 5.0
#: For how long writers to the other backend may wait for the lock.
LOCKED_S = 0.5

#: Rows of these tables never move while they are being removed, so their `ctid` identifies them.
_ENTRIES = (
    "DELETE FROM documents_indexentry WHERE ctid = ANY(ARRAY("
    "SELECT ctid FROM documents_indexentry WHERE index_number = %s LIMIT %s))"
)
_DOCUMENTS = (
    "DELETE FROM documents_document WHERE ctid = ANY(ARRAY("
    "SELECT ctid FROM documents_document WHERE collection_id = %s LIMIT %s))"
)
_CHANGES = (
    "DELETE FROM documents_movechange WHERE ctid = ANY(ARRAY("
    "SELECT ctid FROM documents_movechange WHERE collection_id = %s LIMIT %s))"
)


@task(name=DROP_INDEX_TASK)
def drop_index(*, index: int) -> None:
    """Remove an index's entries, and its row if it was dropped."""
    unused = Index.unscoped.using(ALIAS).filter(
        number=index, state__in=(Index.State.DROPPING, Index.State.FAILED)
    )
    if not unused.exists():
        return
    if _empty_index(index, _deadline()):
        unused.filter(state=Index.State.DROPPING).delete()
    else:
        _schedule(DROP_INDEX_TASK, {"index": index})


@task(name=DROP_TASK)
def drop(*, collection: str) -> None:
    """Remove the contents of a dropped collection, and then its row."""
    dropped = Collection.unscoped.using(ALIAS).filter(
        pk=UUID(collection), state=Collection.State.DROPPING
    )
    if dropped.exists() and not remove_collection(UUID(collection), _deadline()):
        _schedule(DROP_TASK, {"collection": collection})


def remove_collection(collection_id: UUID, deadline: float) -> bool:
    """Remove a collection that is no longer in use. Return whether it was finished in time."""
    if not remove_documents(collection_id, deadline):
        return False
    indexes = Index.unscoped.using(ALIAS).filter(collection_id=collection_id)
    collections = Collection.unscoped.using(ALIAS).filter(pk=collection_id)
    may_be_in_node = Q(backend=Backend.NATIVE) | ~Q(moved_at=None) | ~Q(move_stage="")
    for collection in collections.filter(may_be_in_node):
        drop_from_node(collection.tenant_id, collection_id)
    ImportJob.unscoped.using(ALIAS).filter(collection_id=collection_id).delete()
    indexes.delete()
    collections.delete()
    return True


def remove_documents(collection_id: UUID, deadline: float) -> bool:
    """Remove what PostgreSQL has of a collection's documents. Return whether it was finished in
    time.
    """
    indexes = Index.unscoped.using(ALIAS).filter(collection_id=collection_id)
    for number in indexes.values_list("number", flat=True):
        if not _empty_index(number, deadline):
            return False
    statements = (_DOCUMENTS, _CHANGES)
    return all(
        _in_batches(partial(_delete, statement, collection_id), deadline)
        for statement in statements
    )


@task(name=REMOVE_COPY_TASK)
def remove_copy(*, tenant: str, collection: str, backend: str) -> None:
    """Remove what a backend has of a collection that is in the other one and stays there."""
    tenant_id, collection_id = UUID(tenant), UUID(collection)
    with scoped(tenant_id=tenant_id):
        lock_exclusively(collection_id)
        rows = Collection.objects.filter(pk=collection_id, move_stage="")
        if not rows.exclude(backend=backend).exists():
            return
        # Under the lock, so that no move to the backend begins meanwhile.
        if backend == Backend.NATIVE:
            drop_from_node(tenant_id, collection_id)
        elif not remove_documents(collection_id, time.monotonic() + LOCKED_S):
            remaining = {"tenant": tenant, "collection": collection, "backend": backend}
            run_after_commit(REMOVE_COPY_TASK, {**remaining}, tenant_id=tenant_id)


def _empty_index(number: int, deadline: float) -> bool:
    return _in_batches(lambda: _delete(_ENTRIES, number), deadline)


def _in_batches(delete: Callable[[], int], deadline: float) -> bool:
    """Delete batch by batch. Return whether nothing was left before the deadline."""
    while delete() == BATCH_ROWS:
        if time.monotonic() > deadline:
            return False
    return True


def _delete(statement: str, owner: UUID | int) -> int:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(statement, (owner, BATCH_ROWS))
        return int(cursor.rowcount)


def _deadline() -> float:
    return time.monotonic() + SLICE_S


def _schedule(name: str, arguments: dict[str, int] | dict[str, str]) -> None:
    with transaction.atomic(using=ALIAS):
        run_after_commit(name, {**arguments}, using=ALIAS)
