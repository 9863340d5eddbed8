"""Traces as they arrive at a real OTLP/HTTP receiver."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from celery.signals import task_postrun
from django.db import connection
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from foundation import tracing

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Receiver:
    """Keeps every span that is posted to it, as a collector would."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                assert self.path == "/v1/traces"
                receiver.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def take(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            self.services |= {
                a.value.string_value
                for a in resource.resource.attributes
                if a.key == "service.name"
            }
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)

    def named(self, name: str) -> Span:
        found = [span for span in self.spans if span.name == name]
        assert len(found) == 1, [span.name for span in self.spans]
        return found[0]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def attributes(span: Span) -> dict[str, object]:
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    running = Receiver()
    yield running
    tracing.stop()
    running.close()


@pytest.fixture
def traces(receiver: Receiver) -> tracing.Tracing:
    started = tracing.start(receiver.url, "rillbase-test")
    assert started is not None
    return started


def test_a_request_continues_the_callers_trace_and_is_named_by_its_route(
    receiver: Receiver, traces: tracing.Tracing
) -> None:
    with traces.http_request("GET", {"traceparent": PARENT}) as span:
        span.answered("api/v1/tenants/<uuid:tenant>", 200, "req-1")
    tracing.stop()
    sent = receiver.named("GET api/v1/tenants/<uuid:tenant>")
    assert sent.trace_id.hex() == PARENT.split("-")[1]
    assert sent.parent_span_id.hex() == PARENT.split("-")[2]
    assert sent.kind == Span.SPAN_KIND_SERVER
    assert attributes(sent) == {
        "http.request.method": "GET",
        "http.route": "api/v1/tenants/<uuid:tenant>",
        "http.response.status_code": 200,
        "rillbase.request_id": "req-1",
    }
    assert receiver.services == {"rillbase-test"}


@pytest.mark.parametrize("header", ["", "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
def test_a_malformed_traceparent_begins_a_new_trace(
    receiver: Receiver, traces: tracing.Tracing, header: str
) -> None:
    with traces.http_request("GET", {"traceparent": header}) as span:
        span.answered("", 500, "req-1")
    tracing.stop()
    sent = receiver.named("GET")
    assert sent.trace_id.hex() != "0" * 32
    assert sent.parent_span_id == b""
    assert sent.status.code == 2


def test_queries_are_spans_of_the_request_and_carry_no_values(
    receiver: Receiver, traces: tracing.Tracing
) -> None:
    traces.instrument_database()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    with traces.http_request("GET", {}), connection.cursor() as cursor:
        cursor.execute("SELECT %s || 'b'", ["very-private"])
    tracing.stop()
    request, query = receiver.named("GET"), receiver.named("SELECT")
    assert query.parent_span_id == request.span_id
    assert attributes(query)["db.query.text"] == "SELECT %s || 'b'"
    assert attributes(query)["rillbase.database"] == "default"
    assert "very-private" not in str(receiver.spans)


def test_a_task_continues_the_trace_of_the_request_that_sent_it(
    receiver: Receiver, traces: tracing.Tracing, valkey_url: str
) -> None:
    app = Celery("traced", broker=valkey_url, set_as_current=False)
    app.conf.task_default_queue = "test-tracing"
    ended = threading.Semaphore(0)

    @app.task(name="traced.succeed")  # type: ignore[untyped-decorator]
    def succeed() -> int:
        return 3

    @app.task(name="traced.fail")  # type: ignore[untyped-decorator]
    def fail() -> None:
        raise ValueError("as it should")

    def count(**_: object) -> None:
        ended.release()

    traces.instrument_celery()
    task_postrun.connect(count)
    with start_worker(app, pool="solo", perform_ping_check=False):
        with traces.http_request("POST", {"traceparent": PARENT}):
            succeed.delay()
            fail.delay()
        assert all(ended.acquire(timeout=20) for _ in range(2))
    tracing.stop()
    request = receiver.named("POST")
    for name, state in (("run traced.succeed", "SUCCESS"), ("run traced.fail", "FAILURE")):
        task = receiver.named(name)
        assert task.trace_id == request.trace_id
        assert task.parent_span_id == request.span_id
        assert attributes(task)["rillbase.task_state"] == state
    assert receiver.named("run traced.fail").status.code == 2


def test_without_an_endpoint_nothing_is_imported() -> None:
    program = """
import sys
from foundation import tracing
assert tracing.start("", "rillbase") is None
assert tracing.active() is None
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
