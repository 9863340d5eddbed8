"""Moves collections to the other backend while they are read and written.

A move copies the documents in the order of their keys, and again those that were changed meanwhile:
from its beginning on, writers record what they change, in the transaction of the change. Writers
wait only while the last changes are copied. Each step is short and can be repeated: a document is
replaced only by a newer version. So a move continues wherever it was interrupted.
"""

from __future__ import annotations

import enum
import logging
import time
from datetime import timedelta
from uuid import UUID

from django.db import OperationalError, connections
from django.utils import timezone

from documents.backend import Backend
from documents.collections.backend_copies import BackendCopies, MoveFailed
from documents.collections.moves import MOVE_TASK, queue_move, remove_copy_later
from documents.collections.node_copies import NodeCopies
from documents.collections.node_upkeep import install_after_commit
from documents.collections.postgres_copies import PostgresCopies
from documents.models import Collection, CollectionMove, Index
from documents.store.locks import lock_exclusively
from documents.store.node.definitions import IndexViolated
from foundation.errors import Unavailable
from foundation.scope import scoped
from foundation.tasks import task
from tenants import audit

log = logging.getLogger(__name__)

#: A task works for this long, then yields to others.
SLICE_S = 5.0
#: Until a step that could not proceed is repeated.
PAUSE_S = 0.5
#: The last changes are copied while writers wait once there are fewer than this number.
FEW_CHANGES = 200
#: For how long the copy in the former backend remains.
REMAINS_S = 24 * 3600
#: For how long a move waits until live queries can be served in the new backend.
GRID_WAIT = timedelta(seconds=60)
_TRY_AGAIN = frozenset({"40P01", "55P03"})

_HAS_GRID = (
    "SELECT EXISTS (SELECT FROM documents_gridepoch WHERE backend = %s AND retired_at IS NULL), "
    "EXISTS (SELECT FROM documents_gridepoch WHERE retired_at IS NULL)"
)


class MoveProgress(enum.Enum):
    """What follows a step of a move."""

    CONTINUES = enum.auto()
    #: Something has to happen elsewhere first.
    WAITS = enum.auto()
    FINISHED = enum.auto()


@task(name=MOVE_TASK)
def move(*, tenant: str, collection: str) -> None:
    """Work for a while; then queue a task of the same kind to continue."""
    tenant_id, collection_id = UUID(tenant), UUID(collection)
    deadline, result = time.monotonic() + SLICE_S, MoveProgress.CONTINUES
    while result is MoveProgress.CONTINUES and time.monotonic() < deadline:
        result = step(tenant_id, collection_id)
    if result is MoveProgress.FINISHED:
        return
    with scoped(tenant_id=tenant_id):
        pause_s = PAUSE_S if result is MoveProgress.WAITS else 0
        queue_move(tenant_id, collection_id, due_in_s=pause_s)


def step(tenant_id: UUID, collection_id: UUID) -> MoveProgress:
    """Do one step of a collection's move."""
    try:
        with scoped(tenant_id=tenant_id):
            move = _lock(collection_id)
            if move is None:
                return MoveProgress.FINISHED
            copies = _copies_of(move)
            if not _is_nearly_equal(move, copies):
                return MoveProgress.CONTINUES
            if not _has_grid(move):
                return MoveProgress.WAITS
            if move.collection.move_stage == Collection.MoveStage.COPYING:
                # Before writers wait, since counting takes long in large collections.
                copies.check()
        return _finish(tenant_id, collection_id)
    except (MoveFailed, IndexViolated) as error:
        _fail(tenant_id, collection_id, str(error))
        return MoveProgress.FINISHED
    except Unavailable as error:
        log.warning("the move of collection %s waits: %s", collection_id, error)
        return MoveProgress.WAITS
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) not in _TRY_AGAIN:
            raise
        return MoveProgress.WAITS


def _lock(collection_id: UUID) -> CollectionMove | None:
    """Lock a move that has not ended, unless another task has it."""
    moves = CollectionMove.objects.filter(
        collection_id=collection_id, collection__state=Collection.State.ACTIVE
    )
    moves = moves.exclude(state=CollectionMove.State.FAILED).select_related("collection")
    return moves.select_for_update(of=("self",), skip_locked=True).first()


def _copies_of(move: CollectionMove) -> BackendCopies:
    if move.backend == Backend.NATIVE:
        return NodeCopies(move.collection)
    return PostgresCopies(move.collection)


def _is_nearly_equal(move: CollectionMove, copies: BackendCopies) -> bool:
    """Copy some documents. Return whether few changes are left to copy."""
    if move.state == CollectionMove.State.CLEARING:
        if copies.clear():
            move.state = CollectionMove.State.COPYING
            move.documents_total = copies.count()
            move.save()
        return False
    if not move.has_copied_all:
        part = copies.copy_next(bytes(move.position))
        move.documents_done += part.documents
        move.documents_total = max(move.documents_total, move.documents_done)
        move.position, move.has_copied_all = part.after or b"", part.after is None
        move.save()
        return False
    # Notes that a task is at work.
    move.save(update_fields=["updated_at"])
    return copies.copy_changed() < FEW_CHANGES


def _has_grid(move: CollectionMove) -> bool:
    """Return whether live queries can be served in the new backend, if there are any."""
    if timezone.now() - move.created_at > GRID_WAIT:
        return True
    with connections["relay"].cursor() as cursor:
        cursor.execute(_HAS_GRID, (move.backend,))
        has_grid, has_any = cursor.fetchone()
    return bool(has_grid or not has_any)


def _finish(tenant_id: UUID, collection_id: UUID) -> MoveProgress:
    """Copy the last changes while writers wait, and switch to the new backend."""
    with scoped(tenant_id=tenant_id):
        lock_exclusively(collection_id)
        collection = Collection.objects.select_for_update().get(pk=collection_id)
        move = _lock(collection_id)
        if move is None:
            return MoveProgress.FINISHED
        copies = _copies_of(move)
        if copies.must_seal and collection.move_stage != Collection.MoveStage.SEALED:
            # Writers to the node do not wait for this lock.
            collection.move_stage = Collection.MoveStage.SEALED
            collection.write_version += 1
            collection.save_next_version()
            install_after_commit(collection)
            return MoveProgress.CONTINUES
        while copies.copy_changed():
            if copies.must_seal:
                # What was copied is forgotten once this is committed.
                return MoveProgress.CONTINUES
        _switch(collection, move, copies)
    return MoveProgress.FINISHED


def _switch(collection: Collection, move: CollectionMove, copies: BackendCopies) -> None:
    former = Backend(collection.backend)
    copies.complete(collection)
    collection.backend, collection.move_stage = move.backend, ""
    collection.moved_at = timezone.now()
    collection.write_version += 1
    # What is known of their use is that in the former backend.
    indexes = Index.objects.filter(collection=collection)
    indexes.update(chosen_technique="", counters=None, counters_at=None, advice=None)
    collection.save_next_version()
    move.delete()
    install_after_commit(collection)
    copies.close_former_after_commit(collection)
    remove_copy_later(collection, former, due_in_s=REMAINS_S)
    audit.record(
        None,
        "collection.moved",
        audit.AuditTarget("collection", str(collection.pk)),
        before={"backend": former},
        after={"backend": collection.backend},
    )


def _fail(tenant_id: UUID, collection_id: UUID, error: str) -> None:
    with scoped(tenant_id=tenant_id):
        lock_exclusively(collection_id)
        collection = Collection.objects.select_for_update().get(pk=collection_id)
        moves = CollectionMove.objects.filter(collection=collection)
        backend = moves.values_list("backend", flat=True).first()
        if backend is None:
            return
        moves.update(state=CollectionMove.State.FAILED, error=error)
        collection.move_stage = ""
        collection.write_version += 1
        collection.save_next_version()
        install_after_commit(collection)
        remove_copy_later(collection, Backend(backend), due_in_s=0)
