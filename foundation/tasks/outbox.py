"""Tasks that start if and only if a transaction commits."""

from __future__ import annotations

import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from foundation import request_context
from foundation.json_types import JsonObject
from foundation.models import OutboxTask
from foundation.tasks.dispatcher import dispatcher
from foundation.tasks.queues import queue_of


def run_after_commit(
    task_name: str,
    arguments: JsonObject,
    *,
    tenant_id: UUID | None = None,
    due_in_s: float = 0,
    using: str = "default",
) -> OutboxTask:
    """Run a task after the current transaction of `using` has committed. The task runs at least
    once, not before `due_in_s` seconds have passed, and knows the request that created it. If the
    transaction rolls back there is no task.
    """
    row = OutboxTask(
        tenant_id=tenant_id,
        request_id=request_context.request_id.get(),
        name=task_name,
        arguments=arguments,
        queue=queue_of(task_name),
        due_at=timezone.now() + datetime.timedelta(seconds=due_in_s),
    )
    row.save(using=using, force_insert=True)
    if due_in_s <= 0:
        transaction.on_commit(lambda: dispatcher().submit(row.id), using=using)
    return row
