"""Ties Celery's signals to traces: the publisher's trace goes on in the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery.signals import (
    before_task_publish,
    task_failure,
    task_postrun,
    task_prerun,
    worker_process_shutdown,
)

from foundation import tracing

if TYPE_CHECKING:
    from contextvars import Token

    from celery import Task
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

CARRIED = ("traceparent", "tracestate")


class TaskSpans:
    """Keeps the span of each task that runs in this process, by the task's id."""

    def __init__(self, traces: tracing.Tracing) -> None:
        self._tracing = traces
        self._running: dict[str, tuple[Span, Token[Context]]] = {}
        self._errors: dict[str, BaseException] = {}

    def connect(self) -> None:
        before_task_publish.connect(self._publishing, weak=False)
        task_prerun.connect(self._beginning, weak=False)
        task_failure.connect(self._failed, weak=False)
        task_postrun.connect(self._ended, weak=False)
        worker_process_shutdown.connect(self._process_ends, weak=False)

    def _publishing(self, headers: dict[str, str], **_: object) -> None:
        self._tracing.inject(headers)

    def _beginning(self, task_id: str, task: Task, **_: object) -> None:
        headers = {name: value for name in CARRIED if (value := task.request.get(name))}
        self._running[task_id] = self._tracing.begin_task(task.name, task_id, headers)

    def _failed(self, task_id: str, exception: BaseException, **_: object) -> None:
        self._errors[task_id] = exception

    def _ended(self, task_id: str, state: str | None = None, **_: object) -> None:
        error = self._errors.pop(task_id, None)
        running = self._running.pop(task_id, None)
        if running is not None:
            self._tracing.end_task(*running, state or "UNKNOWN", error)

    def _process_ends(self, **_: object) -> None:
        tracing.stop()
