"""OpenTelemetry traces, when an endpoint is configured, and nothing at all otherwise.

The libraries are imported in `start` only, so an installation without traces neither pays for
them at start nor per request: callers ask `active()` and get None. Requests, database queries
and tasks become spans; W3C `traceparent` is understood in requests and carried in task messages.
A query's text is recorded with placeholders, never with its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextvars import Token

    from django.db.backends.base.base import BaseDatabaseWrapper
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

Execute = Callable[[str, Any, bool, dict[str, Any]], Any]

MAX_QUERY_CHARS = 2000
FLUSH_TIMEOUT_MS = 5000

_active: Tracing | None = None


def active() -> Tracing | None:
    """Return the tracing of this process, or None when there is none."""
    return _active


def start(endpoint: str, service: str) -> Tracing | None:
    """Start tracing to an OTLP/HTTP endpoint; if it is empty, nothing is traced."""
    global _active  # noqa: PLW0603 - a process has one tracing, decided at its start
    if endpoint and _active is None:
        _active = Tracing(endpoint, service)
    return _active


def stop() -> None:
    """Send what is waiting and end tracing."""
    global _active  # noqa: PLW0603 - see start
    if _active is not None:
        _active.shut_down()
        _active = None


class HttpSpan:
    """The span of one request; its name is known only once a route has matched."""

    def __init__(self, span: Span, method: str) -> None:
        self._span = span
        self._method = method

    def answered(self, route: str, status: int, request_id: str) -> None:
        self._span.update_name(f"{self._method} {route}" if route else self._method)
        self._span.set_attributes(
            {
                "http.route": route,
                "http.response.status_code": status,
                "rillbase.request_id": request_id,
            }
        )
        if status >= 500:  # noqa: PLR2004 - HTTP's class of server errors
            from opentelemetry.trace import StatusCode  # noqa: PLC0415 - see module docstring

            self._span.set_status(StatusCode.ERROR)


class Tracing:
    """Creates spans and sends them in batches from a dedicated thread."""

    def __init__(self, endpoint: str, service: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - lazy
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - lazy
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - lazy
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - lazy
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - lazy
            TraceContextTextMapPropagator,
        )

        exporter = OTLPSpanExporter(endpoint=endpoint.rstrip("/") + "/v1/traces")
        self._provider = TracerProvider(resource=Resource.create({"service.name": service}))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("rillbase")
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def http_request(self, method: str, headers: Mapping[str, str]) -> Iterator[HttpSpan]:
        """Wrap one request; it continues the caller's trace if there is one."""
        from opentelemetry.trace import SpanKind  # noqa: PLC0415 - lazy

        with self._tracer.start_as_current_span(
            method,
            context=self._propagator.extract(headers),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method},
        ) as span:
            yield HttpSpan(span, method)

    def inject(self, headers: dict[str, str]) -> None:
        """Add the current trace to the headers of an outgoing message."""
        self._propagator.inject(headers)

    def query(
        self,
        execute: Execute,
        sql: str,
        params: Any,
        many: bool,  # noqa: FBT001 - Django's interface
        context: dict[str, Any],
    ) -> object:
        """Run a query as a child of the current span; without one, it is not traced."""
        from opentelemetry.trace import SpanKind, get_current_span  # noqa: PLC0415 - lazy

        if not get_current_span().is_recording():
            return execute(sql, params, many, context)
        text = str(sql)[:MAX_QUERY_CHARS]
        with self._tracer.start_as_current_span(
            text.partition(" ")[0].upper() or "QUERY",
            kind=SpanKind.CLIENT,
            attributes={
                "db.system.name": "postgresql",
                "db.query.text": text,
                "rillbase.database": str(getattr(context["connection"], "alias", "")),
            },
        ):
            return execute(sql, params, many, context)

    def begin_task(
        self, name: str, task_id: str, headers: Mapping[str, str]
    ) -> tuple[Span, Token[Context]]:
        """Begin a task's span and make it the current one."""
        from opentelemetry import context, trace  # noqa: PLC0415 - lazy

        span = self._tracer.start_span(
            f"run {name}",
            context=self._propagator.extract(headers),
            kind=trace.SpanKind.CONSUMER,
            attributes={"messaging.system": "celery", "rillbase.task_id": task_id},
        )
        return span, context.attach(trace.set_span_in_context(span))

    def end_task(
        self, span: Span, token: Token[Context], state: str, error: BaseException | None
    ) -> None:
        """End a task's span with the state that Celery gave the task."""
        from opentelemetry import context, trace  # noqa: PLC0415 - lazy

        span.set_attribute("rillbase.task_state", state)
        if error is not None:
            span.record_exception(error)
            span.set_status(trace.StatusCode.ERROR)
        context.detach(token)
        span.end()

    def shut_down(self) -> None:
        self._provider.force_flush(FLUSH_TIMEOUT_MS)
        self._provider.shutdown()


def instrument_database() -> None:
    """Trace the queries of Django's connections, present and future, while tracing is active."""
    from django.db import connections  # noqa: PLC0415 - tracing also serves without Django
    from django.db.backends.signals import connection_created  # noqa: PLC0415 - see above

    connection_created.connect(_add_wrapper)
    for connection in connections.all(initialized_only=True):
        _add_wrapper(connection)


def _add_wrapper(connection: BaseDatabaseWrapper, **_: object) -> None:
    if _traced_query not in connection.execute_wrappers:
        connection.execute_wrappers.append(_traced_query)


def _traced_query(
    execute: Execute,
    sql: str,
    params: Any,
    many: bool,  # noqa: FBT001 - Django's interface
    context: dict[str, Any],
) -> object:
    traces = _active
    if traces is None:
        return execute(sql, params, many, context)
    return traces.query(execute, sql, params, many, context)
