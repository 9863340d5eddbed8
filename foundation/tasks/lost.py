"""Tasks whose process died, or whose time ran out for good.

The killed process cannot report its failure, and the worker's main process must not use the
database: it forks, and connections do not survive that. So the main process sends a message about
the loss, which another process settles like any other failure. Only then is the lost message
acknowledged. Without this, a task that kills its process would be delivered again without end.

A whole machine that dies takes its main process along; its messages come back after the
visibility timeout, and the attempt does not count.
"""

from __future__ import annotations

import logging
from uuid import UUID

from celery.exceptions import WorkerLostError
from celery.worker.request import Request
from celery.worker.state import task_ready

from foundation.json_types import JsonObject
from foundation.tasks.broker import CONTEXT_HEADER, Broker, BrokerAway
from foundation.tasks.context import TaskContext
from foundation.tasks.definition import settle_by_policy, task
from foundation.tasks.failures import Failure
from foundation.tasks.queues import DEFAULT

RECORD_LOSS = "foundation.tasks.record_loss"

logger = logging.getLogger(__name__)
_broker = Broker()


@task(name=RECORD_LOSS)
def record_loss(
    *,
    task_id: str,
    name: str,
    arguments: JsonObject,
    error: str,
    attempt: int,
    tenant_id: str | None,
    request_id: str,
) -> None:
    """Settle the failure of a task that could not do so itself."""
    context = TaskContext(UUID(tenant_id) if tenant_id else None, request_id, attempt)
    settle_by_policy(Failure(task_id, name, arguments, context, error))


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
            },
            queue=DEFAULT,
            context={"tenant_id": tenant_id, "request_id": context.request_id, "attempt": 1},
        )
    except BrokerAway as away:
        logger.warning("the loss of %s could not be reported: %s", name, away)
        return False
    return True


class LossReportingRequest(Request):  # type: ignore[misc]
    """A message in the worker's main process."""

    def on_timeout(self, soft: bool, timeout: float) -> None:  # noqa: FBT001 -- Celery's signature
        """Report a task that was killed at its hard limit; else do what Celery does."""
        if soft or not self._report(f"The hard time limit of {timeout} s was exceeded."):
            super().on_timeout(soft, timeout)

    def on_failure(
        self,
        exc_info: object,
        send_failed_event: bool = True,  # noqa: FBT001, FBT002 -- Celery's signature
        return_ok: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Report a task whose process died; else do what Celery does."""
        error = getattr(exc_info, "exception", None)
        died = isinstance(error, (WorkerLostError, SystemExit))
        if not died or not self._report(f"The process died: {error}"):
            super().on_failure(exc_info, send_failed_event, return_ok)

    def _report(self, error: str) -> bool:
        header = self._request_dict.get(CONTEXT_HEADER)
        if not report_loss(self.id, self.name, self.kwargs, header, error):
            return False
        task_ready(self)
        self.acknowledge()
        logger.error("%s was lost: %s", self.name, error, extra={"task_id": self.id})
        return True
