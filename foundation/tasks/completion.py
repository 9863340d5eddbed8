"""Removes a task's row when the task has ended, whatever its outcome.

A broker may deliver a message twice, most of all after a restart. The second copy detects that the
attempt has ended, because the row is gone or counts another attempt.
"""

from __future__ import annotations

import logging

from django.db import connections

from foundation.json_types import JsonObject
from foundation.tasks.broker import Broker, BrokerUnavailable
from foundation.tasks.context import TaskContext
from foundation.tasks.queues import DEFAULT

ALIAS = "relay"
RECORD_END = "foundation.tasks.record_end"

logger = logging.getLogger(__name__)


def has_ended(task_id: str, context: TaskContext) -> bool:
    """Return whether another copy of the message has already completed this attempt."""
    if not context.tracked:
        return False
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM foundation_outboxtask WHERE id = %s AND attempt = %s",
            (task_id, context.attempt),
        )
        return cursor.fetchone() is None


def end(task_id: str, context: TaskContext) -> None:
    """Remove the row of a task that will not be attempted again."""
    if not context.tracked:
        return
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(
            "DELETE FROM foundation_outboxtask WHERE id = %s AND attempt = %s",
            (task_id, context.attempt),
        )


def end_later(task_id: str, context: TaskContext) -> None:
    """Schedule the removal of the row for when the database accepts writes again.

    The task itself has succeeded and must not run again every few seconds meanwhile.
    """
    arguments: JsonObject = {"task_id": task_id, "attempt": context.attempt}
    try:
        Broker().send_task(RECORD_END, arguments, queue=DEFAULT, context={})
    except BrokerUnavailable as error:
        logger.warning(
            "the completion of %s was not recorded, so it will run again: %s", task_id, error
        )
