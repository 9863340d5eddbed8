"""Begin and cancel moves of collections to the other backend.

A move copies the documents while the collection is read and written (`documents.collections.mover`).
Readers and writers use the present backend until the last changes are copied.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    arguments: JsonObject = {
        "tenant": str(collection.tenant_id),
        "collection": str(collection.pk),
    }
    run_after_commit(MOVE_TASK, arguments, tenant_id=collection.tenant_id)


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
    run_after_commit(
        REMOVE_COPY_TASK, arguments, tenant_id=collection.tenant_id, due_in_s=due_in_s
    )


def _require_composite(indexes: Sequence[Index]) -> None:
    for index in indexes:
        declared = DeclaredTechnique(index.technique)
        if declared.initial != DeclaredTechnique.COMPOSITE:
            raise NotSupportedByBackend(
                f"Only native collections have {declared} indexes: declare {index.name!r} as auto "
                "or composite first."
            )
