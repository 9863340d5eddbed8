"""Handles failed tasks: another attempt through the outbox, or a dead letter."""

from __future__ import annotations

import datetime
import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.db import models, transaction
from django.utils import timezone

from foundation.json_types import JsonObject
from foundation.models import DeadLetter, OutboxTask
from foundation.tasks import completion
from foundation.tasks.context import TaskContext
from foundation.tasks.queues import queue_of
from foundation.tasks.retry_policy import RetryPolicy

ALIAS = "relay"
MAX_ERROR_CHARS = 4000
#: Delay after which a task that failed because of a full disk is retried.
POSTPONED_S = 15.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """One failed attempt."""

    task_id: str
    name: str
    arguments: JsonObject
    context: TaskContext
    error: str

    @property
    def last_line(self) -> str:
        """The error message, without the traceback."""
        return self.error.rstrip().rpartition("\n")[2]


#: Called when a task of a tenant has failed permanently, with its name and number of attempts.
DeadLetterListener = Callable[[UUID, str, int], None]
_dead_letter_listeners: list[DeadLetterListener] = []


def on_dead_letter(listener: DeadLetterListener) -> None:
    """Register a callback for tenants' tasks that have failed permanently.

    For `AppConfig.ready`.
    """
    _dead_letter_listeners.append(listener)


def describe_error(error: BaseException) -> str:
    """Return the end of the traceback: where the error occurred, and its message."""
    return "".join(traceback.format_exception(error))[-MAX_ERROR_CHARS:]


def settle(failure: TaskFailure, policy: RetryPolicy) -> float | None:
    """Schedule the next attempt and return its delay, or write the dead letter. Doing it twice
    changes nothing.
    """
    delay_s = policy.retry_in_s(failure.context.attempt)
    if delay_s is None:
        keep_dead_letter(failure)
    else:
        _schedule_retry(failure, delay_s, failure.context.attempt + 1)
    return delay_s


def postpone(failure: TaskFailure) -> float:
    """Schedule the same attempt again and return its delay: it failed because of a full disk, not
    because of the task. However long that lasts, it never makes the task a dead letter.
    """
    _schedule_retry(failure, POSTPONED_S, failure.context.attempt)
    return POSTPONED_S


def _schedule_retry(failure: TaskFailure, delay_s: float, attempt: int) -> None:
    due_at = timezone.now() + datetime.timedelta(seconds=delay_s)
    if failure.context.tracked:
        # Waits for the dispatcher that handed this attempt over and has not committed yet: a task
        # can fail faster. If the row is gone, or counts another attempt, another copy settled it.
        OutboxTask.objects.using(ALIAS).filter(
            pk=UUID(failure.task_id), attempt=failure.context.attempt
        ).update(attempt=attempt, due_at=due_at, handed_to="")
    else:
        _insert(failure, due_at, attempt)
    logger.warning("%s failed; retrying in %.0f s", failure.name, delay_s, extra=_extra(failure))


def _insert(failure: TaskFailure, due_at: datetime.datetime, attempt: int) -> None:
    """Create a row for a task that has none because an earlier release removed it when sending
    the task.
    """
    row = OutboxTask(
        id=UUID(failure.task_id),
        tenant_id=failure.context.tenant_id,
        request_id=failure.context.request_id,
        attempt=attempt,
        name=failure.name,
        arguments=failure.arguments,
        queue=queue_of(failure.name),
        due_at=due_at,
    )
    rows = OutboxTask.objects.using(ALIAS)
    with transaction.atomic(using=ALIAS):
        # The dispatcher of this attempt may not have removed its row yet: a task can fail sooner.
        # Wait for that, or the next attempt would appear to exist already and be lost.
        rows.select_for_update().filter(pk=row.pk).first()
        rows.bulk_create([row], ignore_conflicts=True)


def keep_dead_letter(failure: TaskFailure) -> None:
    """Store a task that will not be attempted again, so that staff can inspect it."""
    dead_letter = DeadLetter(
        tenant_id=failure.context.tenant_id,
        task_id=failure.task_id,
        name=failure.name,
        arguments=failure.arguments,
        error=failure.error,
        attempts=failure.context.attempt,
    )
    with transaction.atomic(using=ALIAS):
        DeadLetter.objects.using(ALIAS).bulk_create([dead_letter], ignore_conflicts=True)
        completion.end(failure.task_id, failure.context)
    if dead_letter.tenant_id is not None:
        for listener in _dead_letter_listeners:
            listener(dead_letter.tenant_id, dead_letter.name, dead_letter.attempts)
    logger.error("%s failed permanently", failure.name, extra=_extra(failure))


def note_periodic(failure: TaskFailure) -> None:
    """Keep one dead letter per periodic task, however often it fails: its next run is its retry."""
    values = {"error": failure.error, "failed_at": timezone.now(), "requeued_at": None}
    with transaction.atomic(using=ALIAS):
        dead_letter, made = DeadLetter.objects.using(ALIAS).get_or_create(
            task_id=f"periodic:{failure.name}",
            defaults={"name": failure.name, "arguments": failure.arguments, **values},
        )
        if not made:
            DeadLetter.objects.using(ALIAS).filter(pk=dead_letter.pk).update(
                **values, attempts=models.F("attempts") + 1
            )
        completion.end(failure.task_id, failure.context)
    logger.error("%s failed", failure.name, extra=_extra(failure))


def _extra(failure: TaskFailure) -> dict[str, object]:
    return {
        "task_id": failure.task_id,
        "attempt": failure.context.attempt,
        "error": failure.last_line,
    }
