"""Ties Celery's signals to traces: the publisher's trace continues in the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery.signals import (
    before_task_publish,
    task_failure,
    task_postrun,
    task_prerun,
    task_retry,
    worker_process_shutdown,
)

from foundation import tracing

if TYPE_CHECKING:
    from contextvars import Token

    from celery import Task
    from celery.app.task import Context as TaskRequest
    from celery.exceptions import Retry
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

CARRIED = ("traceparent", "tracestate")


_running: dict[str, tuple[tracing.Tracing, Span, Token[Context]]] = {}
_errors: dict[str, BaseException] = {}


def instrument_celery() -> None:
    """Carry traces in task messages and make each run of a task a span, while tracing is active."""
    before_task_publish.connect(_publishing)
    task_prerun.connect(_beginning)
    task_failure.connect(_failed)
    task_retry.connect(_retried)
    task_postrun.connect(_ended)
    worker_process_shutdown.connect(_process_ends)


def _publishing(headers: dict[str, str], **_: object) -> None:
    traces = tracing.active()
    if traces is not None:
        traces.inject(headers)


def _beginning(task_id: str, task: Task, **_: object) -> None:
    traces = tracing.active()
    if traces is not None:
        headers = {name: value for name in CARRIED if (value := task.request.get(name))}
        _running[task_id] = (traces, *traces.begin_task(task.name, task_id, headers))


def _failed(task_id: str, exception: BaseException, **_: object) -> None:
    if task_id in _running:
        _errors[task_id] = exception


def _retried(request: TaskRequest, reason: Retry, **_: object) -> None:
    if reason.exc is not None:
        _failed(request.id, reason.exc)


def _ended(task_id: str, state: str | None = None, **_: object) -> None:
    error = _errors.pop(task_id, None)
    if task_id in _running:
        traces, span, token = _running.pop(task_id)
        traces.end_task(span, token, state or "UNKNOWN", error)


def _process_ends(**_: object) -> None:
    tracing.stop()
