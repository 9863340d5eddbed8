"""Django behind the edge: what a view knows reaches log line, figure and span."""

from __future__ import annotations

import logging

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, include, path
from pytest_django import Settings

from foundation import metrics, request_context, tracing
from foundation.asgi import App, Message, Receive, Scope, Send
from rillbase_server.edge import Edge, EdgeSettings
from rillbase_server.routed_handler import RoutedHandler
from tests.asgi_driver import Answer, ask, http_scope
from tests.otlp_receiver import Receiver, attributes

LOCAL = {"Host": "localhost"}


def show(_request: HttpRequest, name: str) -> HttpResponse:
    """Do what a view does after authentication, in a thread of Django's."""
    request_context.tenant_id.set("0199-tenant")
    request_context.principal.set("key:01hz")
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::text", [name])
    return HttpResponse(name)


def fail(_request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a view failed")


urlpatterns: list[URLPattern | URLResolver] = [
    path("things/", include([path("<str:name>/parts", show)])),
    path("fail", fail),
]


class Reads:
    """A body of which somebody counts what is read."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self.bytes = 0

    async def ask(self, app: App, scope: Scope) -> Answer:
        async def counting(scope: Scope, receive: Receive, send: Send) -> None:
            async def counted() -> Message:
                message = await receive()
                self.bytes += len(message.get("body", b""))
                return message

            await app(scope, counted, send)

        return await ask(counting, scope, self._pieces)


@pytest.fixture
def server(settings: Settings) -> Edge:
    settings.ROOT_URLCONF = __name__
    return Edge(RoutedHandler(100), EdgeSettings(1000, 1000))


async def test_a_views_route_and_tenant_are_on_the_log_line(
    server: Edge, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "rillbase.request"):
        answer = await ask(server, http_scope("GET", "/things/private/parts", LOCAL))
    assert (answer.status, answer.body) == (200, b"private")
    (line,) = [r.__dict__ for r in caplog.records if r.name == "rillbase.request"]
    assert (line["route"], line["tenant"], line["principal"]) == (
        "things/<str:name>/parts",
        "0199-tenant",
        "key:01hz",
    )


async def test_the_tenant_of_a_request_does_not_leak_to_the_next(
    server: Edge, caplog: pytest.LogCaptureFixture
) -> None:
    await ask(server, http_scope("GET", "/things/private/parts", LOCAL))
    caplog.clear()
    with caplog.at_level(logging.INFO, "rillbase.request"):
        answer = await ask(server, http_scope("GET", "/nothing/here", LOCAL))
    assert answer.status == 404
    (line,) = [r.__dict__ for r in caplog.records if r.name == "rillbase.request"]
    assert (line["route"], line["tenant"], line["principal"]) == ("unmatched", "", "")


async def test_figures_name_the_template_of_a_failing_view(server: Edge) -> None:
    assert (await ask(server, http_scope("GET", "/fail", LOCAL))).status == 500
    labels = '{method="GET",route="fail",status="5xx"}'
    text = metrics.render().decode()
    assert f"rillbase_http_request_duration_seconds_count{labels} 1.0" in text


async def test_a_large_body_is_not_read_before_authentication(server: Edge) -> None:
    pieces = [b"x" * 60] * 10
    for headers in (LOCAL, {**LOCAL, "Content-Length": "600"}):
        scope = http_scope("POST", "/v1/anything", headers)
        reads = Reads(pieces)
        answer = await reads.ask(server, scope)
        assert (answer.status, answer.json()["code"]) == (413, "body_too_large")
        assert ("Connection", "close") in answer.headers
        assert reads.bytes <= 120


async def test_a_request_and_its_queries_are_one_trace(server: Edge) -> None:
    receiver = Receiver()
    tracing.start(receiver.url, "rillbase-test")
    tracing.instrument_database()
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await ask(server, http_scope("GET", "/things/private/parts", {**LOCAL, "traceparent": parent}))
    tracing.stop()
    receiver.close()
    request = receiver.named("GET things/<str:name>/parts")
    query = receiver.named("SELECT")
    assert request.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert query.parent_span_id == request.span_id
    assert attributes(request)["http.response.status_code"] == 200
    assert "private" not in str(receiver.spans)
