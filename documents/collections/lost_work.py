"""Restarts work on collections that was lost: backfills, moves and removals without a running task.

If a backfill is running after all, the two take turns by its index's lock; a second removal simply
finds less to do.
"""

from __future__ import annotations

import datetime

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from documents.collections.actions import BACKFILL_TASK, DROP_INDEX_TASK, DROP_TASK
from documents.collections.moves import queue_move
from documents.models import Collection, CollectionMove, Index
from foundation.tasks import run_after_commit, task
from foundation.tasks.definition import PERIODIC

ALIAS = "relay"
MAX_TASKS = 1_000
#: Until then, the task queued with the change is left to do the work.
GRACE_PERIOD = datetime.timedelta(minutes=2)
#: A move whose task runs is updated more often.
MOVE_STALLED_AFTER = datetime.timedelta(seconds=30)


@task(name="documents.collections.unfinished", policy=PERIODIC)
def sweep() -> None:
    """Queue unfinished work again."""
    before = timezone.now() - GRACE_PERIOD
    indexes = Index.unscoped.using(ALIAS).filter(
        Q(state=Index.State.BUILDING, created_at__lt=before) | Q(state=Index.State.DROPPING)
    )
    dropped = Collection.unscoped.using(ALIAS).filter(
        state=Collection.State.DROPPING, updated_at__lt=before
    )
    moves = CollectionMove.unscoped.using(ALIAS).filter(
        updated_at__lt=timezone.now() - MOVE_STALLED_AFTER
    )
    moves = moves.exclude(state=CollectionMove.State.FAILED)
    with transaction.atomic(using=ALIAS):
        for collection_id, tenant_id in moves.values_list("collection_id", "tenant_id")[:MAX_TASKS]:
            queue_move(tenant_id, collection_id, using=ALIAS)
        for index in indexes.order_by("number")[:MAX_TASKS]:
            _queue(index)
        for pk, tenant_id in dropped.values_list("pk", "tenant_id")[:MAX_TASKS]:
            arguments = {"collection": str(pk)}
            run_after_commit(DROP_TASK, {**arguments}, tenant_id=tenant_id, using=ALIAS)


def _queue(index: Index) -> None:
    tenant_id = index.tenant_id
    if index.state == Index.State.DROPPING:
        run_after_commit(DROP_INDEX_TASK, {"index": index.number}, tenant_id=tenant_id, using=ALIAS)
        return
    run_after_commit(
        BACKFILL_TASK,
        {"tenant": str(tenant_id), "index": index.number},
        tenant_id=tenant_id,
        using=ALIAS,
    )
