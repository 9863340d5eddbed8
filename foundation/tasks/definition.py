"""Turns a function into a task.

The function takes JSON values by keyword and must be idempotent: a message may be delivered twice,
and an attempt may have been interrupted anywhere.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from celery import Task
from celery.exceptions import Reject, Retry
from django.db import DatabaseError

from foundation import failures
from foundation.json_types import JsonObject, JsonValue
from foundation.tasks import completion
from foundation.tasks.app import HARD_LIMIT_S, SOFT_LIMIT_S, app
from foundation.tasks.broker import CONTEXT_HEADER
from foundation.tasks.context import TaskContext
from foundation.tasks.failures import TaskFailure, describe_error, note_periodic, postpone, settle
from foundation.tasks.retry_policy import RetryPolicy

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., None])

#: For a periodic task: a failure is recorded, and the next run is its retry.
PERIODIC: None = None
USUAL = RetryPolicy()
#: Pause of a task that could not even be rescheduled.
RETURN_PAUSE_S = 2.0

_policies: dict[str, RetryPolicy | None] = {}


class PermanentFailure(RuntimeError):
    """A task has failed and is not retried; the cause is its error."""


def task(
    *,
    name: str,
    policy: RetryPolicy | None = USUAL,
    soft_limit_s: float = SOFT_LIMIT_S,
    hard_limit_s: float = HARD_LIMIT_S,
    quiet: bool = False,
) -> Callable[[F], F]:
    """Register the function as the task `name`. The function itself remains callable.

    At the soft limit it is interrupted by an exception, at the hard limit its process is killed;
    both count as a failed attempt. Limits may be below the usual ones, never above: the broker's
    visibility timeout is chosen by those. A quiet task, such as one that runs every second, logs
    its completion only for debugging; its failures are logged like any other's.
    """
    if not 0 < soft_limit_s < hard_limit_s <= HARD_LIMIT_S:
        raise ValueError(f"limits of {name} must satisfy soft < hard <= {HARD_LIMIT_S} s")

    def register(function: F) -> F:
        def run(self: Task, **arguments: JsonValue) -> None:
            _attempt(self, name, function, arguments, logging.DEBUG if quiet else logging.INFO)

        _policies[name] = policy
        app.task(
            run,
            name=name,
            bind=True,
            Request="foundation.tasks.lost_tasks:LossReportingRequest",
            soft_time_limit=soft_limit_s,
            time_limit=hard_limit_s,
            # Celery logs other errors with the task's arguments.
            throws=(PermanentFailure,),
        )
        return function

    return register


def policy_of(name: str) -> RetryPolicy | None:
    """Return how often a task is attempted; the usual policy if this release does not have the
    task.
    """
    return _policies.get(name, USUAL)


def settle_by_policy(failure: TaskFailure, *, postponed: bool = False) -> float | None:
    """Apply the task's policy after a failed or postponed attempt. Return the delay until the next
    attempt, or None if there is none.
    """
    policy = policy_of(failure.name)
    if policy is not PERIODIC:
        return postpone(failure) if postponed else settle(failure, policy)
    if postponed:
        logger.warning("%s is retried later: %s", failure.name, failure.last_line)
    else:
        note_periodic(failure)
    return None


def _attempt(
    message: Task,
    name: str,
    function: Callable[..., None],
    arguments: JsonObject,
    level: int,
) -> None:
    context = TaskContext.of(getattr(message.request, CONTEXT_HEADER, None))
    began = time.monotonic()
    task_id = message.request.id
    with context.entered(name):
        try:
            if completion.has_ended(task_id, context):
                logger.info("%s has already ended", name, extra={"task_id": task_id})
                return
            function(**arguments)
            _end(task_id, context)
            logger.log(
                level,
                "%s is done",
                name,
                extra={
                    "task_id": task_id,
                    "attempt": context.attempt,
                    "duration_ms": round((time.monotonic() - began) * 1000),
                },
            )
        except Exception as error:
            failure = TaskFailure(task_id, name, arguments, context, describe_error(error))
            delay_s = _settle_or_return(failure, postponed=failures.refuses_writes(error))
            # Tells Celery the outcome, for its signals and the traces.
            if delay_s is None:
                raise PermanentFailure(failure.last_line) from error
            raise Retry(exc=error, when=delay_s) from error


def _end(task_id: str, context: TaskContext) -> None:
    try:
        completion.end(task_id, context)
    except DatabaseError as error:
        logger.warning(
            "the end of a task will be recorded later: %s", error, extra={"task_id": task_id}
        )
        completion.end_later(task_id, context)


def _settle_or_return(failure: TaskFailure, *, postponed: bool) -> float | None:
    """Settle a failure, and return the delay until the next attempt. A task that cannot be stored
    in the database returns to the broker instead. The pause prevents a busy loop, since a full disk
    fails immediately. A periodic task is dropped, since its next run is its retry.
    """
    try:
        return settle_by_policy(failure, postponed=postponed)
    except DatabaseError as error:
        if policy_of(failure.name) is PERIODIC:
            logger.warning(
                "%s failed, and the failure could not be recorded: %s", failure.name, error
            )
            return None
        time.sleep(RETURN_PAUSE_S)
        raise Reject(str(error), requeue=True) from error
