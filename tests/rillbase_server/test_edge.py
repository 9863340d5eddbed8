"""The edge's guarantees for every request, whatever the application behind it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from ipaddress import ip_network

import pytest

from foundation import metrics, request_context
from foundation.asgi import Receive, Scope, Send
from rillbase_server.edge import Edge, EdgeSettings
from tests.asgi_driver import Answer, ask, http_scope

Handler = Callable[[Scope, Receive, Send], Awaitable[None]]

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def edge(app: Handler, *, hsts: bool = False) -> Edge:
    return Edge(
        app,
        EdgeSettings(
            body_max_bytes=1000, control_body_max_bytes=100, trusted_proxies=PROXIES, hsts=hsts
        ),
    )


async def reply(send: Send, body: bytes = b"{}", *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


async def hello(_scope: Scope, _receive: Receive, send: Send) -> None:
    await reply(send)


async def read_all(_scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with the size of the body; like Django, send nothing once the client has gone."""
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message["body"])
        if not message["more_body"]:
            await reply(send, str(size).encode())
            return


async def explode(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise RuntimeError("secret internals")


@pytest.mark.parametrize(
    "given", ["abc-123.DEF_9", "0" * 64, "0199c1f0-0000-7000-8000-000000000000"]
)
async def test_a_well_formed_request_id_is_kept(given: str) -> None:
    answer = await ask(edge(hello), http_scope("GET", "/", {"X-Request-Id": given}))
    assert answer.header("x-request-id") == given


@pytest.mark.parametrize(
    "given", ["", "short", "a" * 65, "a b c d e f", "abcdefgh\n", "<script>xx", "é" * 9]
)
async def test_any_other_request_id_is_replaced(given: str) -> None:
    answer = await ask(edge(hello), http_scope("GET", "/", {"X-Request-Id": given}))
    assert len(answer.header("x-request-id")) == 32
    assert given not in answer.header("x-request-id") or not given


async def test_each_request_gets_a_unique_id_that_the_application_sees() -> None:
    seen = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        assert scope["state"]["request_id"] == request_context.request_id.get()
        seen.append(scope["state"]["request_id"])
        await reply(send)

    answers = [await ask(edge(app), http_scope("GET", "/")) for _ in range(2)]
    assert seen == [a.header("x-request-id") for a in answers]
    assert len(set(seen)) == 2


@pytest.mark.parametrize("path", ["/api/v1/tenants", "/v1/collections/a/documents", "/graphql"])
async def test_api_answers_are_sandboxed_and_never_sniffed(path: str) -> None:
    answer = await ask(edge(hello), http_scope("GET", path))
    assert answer.header("content-security-policy") == "sandbox"
    assert answer.header("x-content-type-options") == "nosniff"
    assert answer.header("referrer-policy") == "same-origin"
    assert answer.header("cache-control") == "no-store"
    assert not answer.has("strict-transport-security")


@pytest.mark.parametrize("path", ["/api/docs", "/api/docs/", "/staff/login/", "/"])
async def test_pages_get_a_suitable_policy_and_cannot_be_framed(path: str) -> None:
    policy = (await ask(edge(hello), http_scope("GET", path))).header("content-security-policy")
    assert "sandbox" not in policy
    assert "frame-ancestors 'none'" in policy
    assert ("unsafe-eval" in policy) == path.startswith("/staff/")


async def test_a_policy_that_the_application_sets_is_kept() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await reply(send, b"", (b"Content-Security-Policy", b"default-src 'none'"))

    answer = await ask(edge(app), http_scope("GET", "/api/v1/x"))
    policies = [v for k, v in answer.headers if k.lower() == "content-security-policy"]
    assert policies == ["default-src 'none'"]


async def test_production_responses_have_hsts() -> None:
    answer = await ask(edge(hello, hsts=True), http_scope("GET", "/api/v1/x"))
    assert answer.header("strict-transport-security") == "max-age=31536000"


def assert_too_large(answer: Answer, limit: int) -> None:
    assert answer.status == 413
    assert answer.header("content-type") == "application/problem+json"
    assert answer.header("connection") == "close"
    problem = answer.json()
    assert problem["code"] == "body_too_large"
    assert str(limit) in problem["detail"]
    assert problem["request_id"] == answer.header("x-request-id")


async def test_a_body_that_announces_too_much_is_rejected_before_the_application() -> None:
    scope = http_scope("POST", "/api/v1/x", {"Content-Length": "101"})
    assert_too_large(await ask(edge(explode), scope, [b"x" * 101]), 100)


async def test_a_body_that_streams_too_much_is_rejected() -> None:
    for headers in ({}, {"Content-Length": "50"}, {"Content-Length": "many"}):
        scope = http_scope("POST", "/api/v1/x", headers)
        assert_too_large(await ask(edge(read_all), scope, [b"x" * 60, b"x" * 60, b"x"]), 100)


async def test_a_body_of_exactly_the_limit_passes_and_the_data_plane_has_a_larger_one() -> None:
    answer = await ask(edge(read_all), http_scope("POST", "/api/v1/x"), [b"x" * 50, b"x" * 50])
    assert (answer.status, answer.body) == (200, b"100")
    answer = await ask(edge(read_all), http_scope("POST", "/v1/x"), [b"x" * 1000])
    assert (answer.status, answer.body) == (200, b"1000")
    assert_too_large(await ask(edge(read_all), http_scope("POST", "/v1/x"), [b"x" * 1001]), 1000)


async def test_an_unhandled_error_becomes_a_problem_without_details(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = await ask(edge(explode), http_scope("GET", "/api/v1/x"))
    assert answer.status == 500
    assert answer.header("content-type") == "application/problem+json"
    assert answer.header("content-security-policy") == "sandbox"
    assert answer.json()["code"] == "internal"
    assert answer.json()["request_id"] == answer.header("x-request-id")
    assert b"secret" not in answer.body
    assert any(r.exc_info for r in caplog.records)


async def test_an_error_after_the_response_has_started_closes_the_connection() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        await ask(edge(app), http_scope("GET", "/api/v1/x"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.9", "", "192.0.2.9"),
        ("192.0.2.9", "1.1.1.1", "192.0.2.9"),
        ("10.0.0.1", "1.1.1.1", "1.1.1.1"),
        ("10.0.0.1", "6.6.6.6, 1.1.1.1", "1.1.1.1"),
        ("10.0.0.1", "6.6.6.6, 1.1.1.1, 10.0.0.2", "1.1.1.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "1.1.1.1:4711", "1.1.1.1"),
        ("10.0.0.1", "[2606:4700::1]:4711", "2606:4700::1"),
        ("10.0.0.1", "2606:4700::1", "2606:4700::1"),
        ("fd00::1", "1.1.1.1", "1.1.1.1"),
        ("::ffff:10.0.0.1", "1.1.1.1", "1.1.1.1"),
        ("10.0.0.1", "1.1.1.1, unknown", "10.0.0.1"),
        ("10.0.0.1", "1.1.1.1, <script>, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", ",,,", "10.0.0.1"),
    ],
)
async def test_only_trusted_proxies_determine_the_clients_address(
    peer: str, forwarded: str, client: str
) -> None:
    seen: list[tuple[str, str, str]] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        address = request_context.client_address.get()
        seen.append((scope["client"][0], scope["state"]["client_address"], address))
        await reply(send)

    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    await ask(edge(app), http_scope("GET", "/", headers, client=(peer, 1)))
    assert seen == [(client, client, client)]


@pytest.mark.parametrize(
    ("peer", "proto", "scheme"),
    [
        ("10.0.0.1", "https", "https"),
        ("10.0.0.1", "http", "http"),
        ("10.0.0.1", "http, https", "https"),
        ("192.0.2.9", "https", "http"),
    ],
)
async def test_only_trusted_proxies_determine_the_scheme(
    peer: str, proto: str, scheme: str
) -> None:
    seen = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        seen.append(scope["scheme"])
        await reply(send)

    await ask(edge(app), http_scope("GET", "/", {"X-Forwarded-Proto": proto}, client=(peer, 1)))
    assert seen == [scheme]


async def test_a_client_on_a_socket_file_has_no_address() -> None:
    assert (await ask(edge(hello), http_scope("GET", "/", client=None))).status == 200


async def test_each_request_is_one_log_line_with_route_and_tenant_and_without_the_path(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        scope["state"]["route"] = "api/v1/tenants/<uuid:tenant>"

        async def inside() -> None:
            request_context.tenant_id.set("0199-tenant")
            request_context.principal.set("key:01hz")
            await reply(send, b"12345")

        # As Django does it: the application runs in a task of its own.
        await asyncio.create_task(inside())

    with caplog.at_level(logging.INFO, "rillbase.request"):
        answer = await ask(edge(app), http_scope("GET", "/api/v1/tenants/private-name"))
    (record,) = [r for r in caplog.records if r.name == "rillbase.request"]
    line = record.__dict__
    assert {k: line[k] for k in ("method", "route", "status", "bytes", "tenant", "principal")} == {
        "method": "GET",
        "route": "api/v1/tenants/<uuid:tenant>",
        "status": 200,
        "bytes": 5,
        "tenant": "0199-tenant",
        "principal": "key:01hz",
    }
    assert line["duration_ms"] > 0
    assert request_context.request_id.get() == answer.header("x-request-id")
    assert "private-name" not in str(line)


async def test_metrics_are_by_route_method_and_class_of_status_and_never_by_path() -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["path"].startswith("/known/"):
            scope["state"]["route"] = "known/<str:name>"
        await reply(send)

    for path in ("/known/a-private-name", "/known/b", "/scanned-by-a-robot"):
        await ask(edge(app), http_scope("BREW", path))
    text = metrics.render().decode()
    prefix = "rillbase_http_request_duration_seconds_count"
    assert prefix + '{method="other",route="known/<str:name>",status="2xx"} 2.0' in text
    assert prefix + '{method="other",route="unmatched",status="2xx"} 1.0' in text
    assert "private-name" not in text
    assert "robot" not in text
    assert "rillbase_http_requests_in_progress 0.0" in text


async def test_a_client_that_leaves_before_the_answer_is_recorded_as_such(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        """Send nothing, as Django does when its client has gone."""

    with caplog.at_level(logging.INFO, "rillbase.request"):
        await ask(edge(app), http_scope("POST", "/api/v1/x"))
    assert caplog.records[-1].__dict__["status"] == 499


async def test_a_websocket_has_a_request_id_and_a_client_address() -> None:
    seen: dict[str, str] = {}

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.update(scope["state"], scheme=scope["scheme"])

    scope = http_scope("GET", "/v1/realtime", client=("10.0.0.1", 1))
    forwarded = [(b"x-forwarded-for", b"1.1.1.1"), (b"x-forwarded-proto", b"https")]
    scope |= {"type": "websocket", "scheme": "ws", "headers": forwarded}
    await ask(edge(app), scope)
    assert (seen["client_address"], seen["scheme"]) == ("1.1.1.1", "wss")
    assert len(seen["request_id"]) == 32
