"""Who may open a connection, and how clients authenticate."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tenants.models import ApiKey, Quota, Tenant
from tenants.roles import Role
from tests.caller import with_key
from tests.make import make_key, make_member, make_session, make_tenant
from tests.realtime.client import greeted, opened
from tests.waiting import wait_until


def test_a_key_in_the_first_message_is_welcome(server: str) -> None:
    account = make_tenant()
    with opened(server) as client:
        client.send(type="hello", token=make_key(account.tenant))
        welcome = client.next()
        assert welcome["type"] == "welcome"
        assert welcome["heartbeat_ms"] == 10_000
        assert client.ask("ping", "p1") == {"type": "pong", "id": "p1"}


def test_a_key_in_the_headers_is_welcome_at_once(server: str) -> None:
    account = make_tenant()
    with opened(server, {"Authorization": f"Bearer {make_key(account.tenant)}"}) as client:
        assert client.next()["type"] == "welcome"


def test_a_publishable_key_is_sufficient_by_itself(server: str) -> None:
    account = make_tenant()
    key = make_key(account.tenant, kind=ApiKey.Kind.PUBLISHABLE)
    with opened(server) as client:
        client.send(type="hello", key=key)
        assert client.next()["type"] == "welcome"


@pytest.mark.parametrize(
    "message",
    [
        {"type": "hello"},
        {"type": "hello", "token": "rbk_test_nonsense"},
        {"type": "subscribe", "id": "s", "collection": "todos"},
    ],
    ids=["nothing", "a wrong key", "no hello"],
)
def test_unauthenticated_clients_are_disconnected(server: str, message: dict[str, str]) -> None:
    with opened(server) as client:
        client.send(**message)
        assert client.next()["error"]["status"] == 401
        assert client.closed()[0] == 4401


def test_cookies_open_nothing(server: str) -> None:
    account = make_tenant()
    cookie, _ = make_session(make_member(account.tenant, Role.OWNER))
    headers = {"Cookie": f"rillbase_session={cookie}", "Rillbase-Tenant": account.slug}
    with opened(server, headers) as client:
        client.send(type="hello", tenant=account.slug)
        assert client.closed()[0] == 4401


def test_a_first_message_of_more_than_8_kib_is_refused(server: str) -> None:
    with opened(server) as client:
        client.send(type="hello", token="x" * 8192)
        assert client.closed()[0] == 1009


def test_a_page_of_an_unlisted_origin_is_rejected(server: str) -> None:
    account = make_tenant()
    key = make_key(account.tenant, kind=ApiKey.Kind.PUBLISHABLE)
    with opened(server, origin="https://evil.example") as client:
        client.send(type="hello", key=key)
        assert client.closed()[0] == 4403


def test_a_page_of_a_listed_origin_is_welcome(server: str) -> None:
    account = make_tenant()
    Tenant.objects.using("staff").filter(pk=account.tenant.pk).update(
        cors_origins=["https://app.example"]
    )
    key = make_key(account.tenant, kind=ApiKey.Kind.PUBLISHABLE)
    with opened(server, origin="https://app.example") as client:
        client.send(type="hello", key=key)
        assert client.next()["type"] == "welcome"


def test_another_subprotocol_is_refused_in_the_handshake(server: str) -> None:
    address = server.replace("http", "ws", 1) + "/v1/realtime"
    with pytest.raises(InvalidStatus) as refused:
        connect(address, subprotocols=["rillbase.v9"])  # type: ignore[list-item]
    assert refused.value.response.status_code == 404


def test_a_tenant_has_no_more_connections_than_its_quota_allows(server: str) -> None:
    account = make_tenant()
    Quota(tenant=account.tenant, limits={"connections": 1}).save(using="staff")
    key = make_key(account.tenant)
    with greeted(server, key) as first:
        with opened(server) as second:
            second.send(type="hello", token=key)
            assert second.next()["error"]["code"] == "too_many_connections"
            assert second.closed()[0] == 4429
        assert first.ask("ping", "p")["type"] == "pong"
    with greeted(server, key) as third:
        assert third.ask("ping", "p")["type"] == "pong"


@pytest.mark.parametrize("path", ["/v1/realtime", "/graphql"])
def test_a_handshake_for_a_foreign_host_is_refused_by_a_problem_document(
    server: str, path: str
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://evil.test{path}", sock=connection_to(server))
    answer = refused.value.response
    assert answer.status_code == 400
    assert json.loads(answer.body)["code"] == "unknown_host"


def connection_to(server: str) -> socket.socket:
    """Return a connection to the server that can send any Host header."""
    parts = urlsplit(server)
    return socket.create_connection((parts.hostname, parts.port))


def test_a_rejected_origin_is_in_the_tenants_error_log(server: str) -> None:
    account = make_tenant()
    key = make_key(account.tenant, kind=ApiKey.Kind.PUBLISHABLE)
    with opened(server, {"Origin": "https://elsewhere.example"}) as client:
        client.send(type="hello", key=key)
        assert client.next()["error"]["code"] == "forbidden"
        assert client.closed()[0] == 4403
    errors = f"/api/v1/tenants/{account.slug}/errors"

    def entries() -> list[dict[str, object]]:
        result: list[dict[str, object]] = (
            with_key(server, account.admin_key).get(errors).json()["items"]
        )
        return result

    wait_until(lambda: len(entries()) == 1, what="the rejection to be in the error log")
    (entry,) = entries()
    assert entry["place"] == "WebSocket hello"
    assert "https://elsewhere.example" in str(entry["detail"])
