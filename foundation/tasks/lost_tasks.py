"""Tasks whose process died or that exceeded the hard time limit.

The killed process cannot report its failure, and the worker's main process must not use the
database: it forks, and connections do not survive that. So the main process sends a message about
the loss, which another process settles like any other failure. Only then is the lost message
acknowledged. Without this, a task that kills its process would be redelivered forever. A message of
a task that this release does not have, sent by a newer one during an upgrade, is reported in the
same way: Celery would drop it.

If a whole machine dies, its messages are redelivered after the visibility timeout, and the attempt
does not count.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import UUID

from celery.exceptions import TimeLimitExceeded, WorkerLostError
from celery.signals import task_unknown
from celery.worker.request import Request
from celery.worker.state import task_ready

from foundation.json_types import JsonObject
from foundation.tasks.broker import CONTEXT_HEADER, Broker, BrokerUnavailable
from foundation.tasks.completion import RECORD_END, end
from foundation.tasks.context import TaskContext
from foundation.tasks.definition import settle_by_policy, task
from foundation.tasks.failures import TaskFailure
from foundation.tasks.queues import DEFAULT

if TYPE_CHECKING:
    from kombu.message import Message

RECORD_LOSS = "foundation.tasks.record_loss"

logger = logging.getLogger(__name__)
_broker = Broker()


@task(name=RECORD_LOSS)
def record_loss(  # noqa: PLR0913 -- as its messages have them
    *,
    task_id: str,
    name: str,
    arguments: JsonObject,
    error: str,
    attempt: int,
    tenant_id: str | None,
    request_id: str,
    tracked: bool = False,
) -> None:
    """Settle the failure of a task that could not do so itself."""
    context = TaskContext(UUID(tenant_id) if tenant_id else None, request_id, attempt, tracked)
    settle_by_policy(TaskFailure(task_id, name, arguments, context, error))


@task(name=RECORD_END)
def record_end(*, task_id: str, attempt: int) -> None:
    """Remove the row of a task that ended while the database accepted no writes."""
    end(task_id, TaskContext(attempt=attempt, tracked=True))


def report_loss(task_id: str, name: str, arguments: JsonObject, header: object, error: str) -> bool:
    """Send the message about a lost task. Return whether the broker has it."""
    context = TaskContext.of(header)
    tenant_id = str(context.tenant_id) if context.tenant_id else None
    try:
        _broker.send_task(
            RECORD_LOSS,
            {
                "task_id": task_id,
                "name": name,
                "arguments": arguments,
                "error": error,
                "attempt": context.attempt,
                "tenant_id": tenant_id,
                "request_id": context.request_id,
                "tracked": context.tracked,
            },
            queue=DEFAULT,
            context={"tenant_id": tenant_id, "request_id": context.request_id, "attempt": 1},
        )
    except BrokerUnavailable as unavailable:
        logger.warning("the loss of %s could not be reported: %s", name, unavailable)
        return False
    return True


class LossReportingRequest(Request):  # type: ignore[misc]
    """A message in the worker's main process.

    A hard time limit arrives by both methods, as a time-out and as a failure, in either order.
    """

    _loss_reported = False

    def on_timeout(self, soft: bool, timeout: float) -> None:  # noqa: FBT001 -- Celery's signature
        """Report a task that was killed at its hard limit; else do what Celery does."""
        if soft or not self._report(_what_happened(TimeLimitExceeded(timeout))):
            super().on_timeout(soft, timeout)

    def on_failure(
        self,
        exc_info: object,
        send_failed_event: bool = True,  # noqa: FBT001, FBT002 -- Celery's signature
        return_ok: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Report a task whose process died; else do what Celery does."""
        error = getattr(exc_info, "exception", None)
        error = getattr(error, "exc", error)  # the pool wraps it to carry a traceback
        died = isinstance(error, (WorkerLostError, TimeLimitExceeded, SystemExit))
        if not died or not self._report(_what_happened(error)):
            super().on_failure(exc_info, send_failed_event, return_ok)

    def _report(self, error: str) -> bool:
        if self._loss_reported:
            return True
        header = self._request_dict.get(CONTEXT_HEADER)
        if not report_loss(self.id, self.name, self.kwargs, header, error):
            return False
        self._loss_reported = True
        task_ready(self)
        self.acknowledge()
        logger.error("%s was lost: %s", self.name, error, extra={"task_id": self.id})
        return True


def _what_happened(error: object) -> str:
    if isinstance(error, TimeLimitExceeded):
        return f"The hard time limit of {error.args[0]} s was exceeded."
    return f"The process died: {error}"


def _report_unknown(
    message: Message,
    name: str,
    id: str,  # noqa: A002 -- Celery's name
    exc: Exception,
    **_: object,
) -> None:
    _, arguments, _ = message.payload
    report_loss(id, name, arguments, message.headers.get(CONTEXT_HEADER), f"Unknown task: {exc}")


task_unknown.connect(_report_unknown, weak=False)
