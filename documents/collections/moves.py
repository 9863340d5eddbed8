"""Begin and cancel moves of collections to the other backend.

A move copies the documents (`documents.collections.mover`) while readers and writers use the
present backend, until the last changes are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from documents.backend import Backend
from documents.models import Collection, CollectionMove, Index
from documents.technique import DeclaredTechnique
from foundation.errors import Conflict, NotSupportedByBackend
from foundation.json_types import JsonObject
from foundation.tasks import run_after_commit

MOVE_TASK = "documents.collections.move"
REMOVE_COPY_TASK = "documents.collections.remove_copy"


def begin_move(collection: Collection, indexes: Sequence[Index], backend: Backend) -> None:
    """Begin to move a locked collection with these indexes, unless it moves there already."""
    if collection.move_stage:
        return
    if collection.source_id is not None:
        raise NotSupportedByBackend("A collection with a source stays in PostgreSQL.")
    if any(index.state == Index.State.BUILDING for index in indexes):
        raise Conflict("A collection can be moved once its indexes are built.")
    if backend == Backend.POSTGRES:
        _require_composite(indexes)
    CollectionMove.objects.filter(collection=collection).delete()
    CollectionMove.objects.create(
        tenant_id=collection.tenant_id, collection=collection, backend=backend
    )
    collection.move_stage = Collection.MoveStage.COPYING
    queue_move(collection.tenant_id, collection.pk)


def queue_move(
    tenant_id: UUID, collection_id: UUID, *, due_in_s: float = 0, using: str = "default"
) -> None:
    """Queue the task that continues a move."""
    arguments: JsonObject = {"tenant": str(tenant_id), "collection": str(collection_id)}
    run_after_commit(MOVE_TASK, arguments, tenant_id=tenant_id, due_in_s=due_in_s, using=using)


def cancel_move(collection: Collection) -> None:
    """Let a locked collection stay in its backend."""
    if not collection.move_stage:
        return
    for move in CollectionMove.objects.filter(collection=collection):
        remove_copy_later(collection, Backend(move.backend), due_in_s=0)
        move.delete()
    collection.move_stage = ""


def remove_copy_later(collection: Collection, backend: Backend, *, due_in_s: float) -> None:
    """Remove what a backend has of a collection that is in the other one."""
    arguments: JsonObject = {
        "tenant": str(collection.tenant_id),
        "collection": str(collection.pk),
        "backend": backend,
    }
    run_after_commit(REMOVE_COPY_TASK, arguments, tenant_id=collection.tenant_id, due_in_s=due_in_s)


def _require_composite(indexes: Sequence[Index]) -> None:
    for index in indexes:
        declared = DeclaredTechnique(index.technique)
        if declared.initial != DeclaredTechnique.COMPOSITE:
            raise NotSupportedByBackend(
                f"Only native collections have {declared} indexes: declare {index.name!r} as auto "
                "or composite first."
            )
