"""Traces as they arrive at a real OTLP/HTTP receiver."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from celery.signals import task_postrun
from django.db import connection
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from foundation import tracing
from foundation.task_tracing import instrument_celery
from tests.otlp_receiver import Receiver, attributes

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


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
    tracing.instrument_database()
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

    instrument_celery()
    task_postrun.connect(count)
    with start_worker(app, pool="solo", perform_ping_check=False, loglevel="INFO"):
        with traces.http_request("POST", {"traceparent": PARENT}):
            succeed.delay()
            fail.delay()
        assert all(ended.acquire(timeout=60) for _ in range(2))
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
