"""A ticket opens one connection, for the page that it was issued to."""

from __future__ import annotations

import pytest
import requests
from django.utils import timezone

from foundation.scope import scoped
from tenants.models import ApiKey, Tenant
from tests.caller import problem, with_key
from tests.documents.collection import make_collection
from tests.make import TenantAccount, make_key, make_tenant
from tests.realtime.client import opened

PAGE = "https://app.example"


@pytest.fixture
def account() -> TenantAccount:
    account = make_tenant()
    Tenant.objects.using("staff").filter(pk=account.tenant.pk).update(cors_origins=[PAGE])
    return account


def ticket(server: str, key: str, **body: object) -> str:
    answer = with_key(server, key).post("/v1/realtime/tickets", body)
    assert answer.status_code == 201, answer.text
    ticket: str = answer.json()["ticket"]
    return ticket


def test_a_ticket_opens_a_connection_once(server: str, account: TenantAccount) -> None:
    text = ticket(server, make_key(account.tenant), origin=PAGE)
    with opened(server, origin=PAGE) as client:
        client.send(type="hello", token=text)
        assert client.next()["type"] == "welcome"
    with opened(server, origin=PAGE) as client:
        client.send(type="hello", token=text)
        assert client.closed()[0] == 4401


def test_a_ticket_is_valid_only_for_its_origin(server: str, account: TenantAccount) -> None:
    key = make_key(account.tenant)
    for origin in ("https://evil.example", None):
        with opened(server, origin=origin) as client:
            client.send(type="hello", token=ticket(server, key, origin=PAGE))
            assert client.closed()[0] == 4403


def test_a_revoked_keys_ticket_opens_nothing(server: str, account: TenantAccount) -> None:
    key = make_key(account.tenant)
    text = ticket(server, key)
    with scoped(tenant_id=account.tenant.id):
        ApiKey.objects.filter(key_id=key.split("_")[2]).update(revoked_at=timezone.now())
    # The process may use the cached key for a second.
    with opened(server) as client:
        client.send(type="hello", token=text)
        assert client.closed()[0] == 4401


def test_a_ticket_has_no_more_rights_than_its_key(server: str, account: TenantAccount) -> None:
    todos = make_collection(server, account=account)
    text = ticket(server, make_key(account.tenant, scopes=["documents:read"]))
    with opened(server) as client:
        client.send(type="hello", token=text)
        client.next()
        refusal = client.ask("insert", "1", collection=todos.name, document={})
        assert refusal["error"]["code"] == "missing_scope"


def test_an_event_sources_ticket_opens_no_websocket(server: str, account: TenantAccount) -> None:
    todos = make_collection(server, account=account)
    text = ticket(server, make_key(account.tenant), live={"collection": todos.name})
    with opened(server) as client:
        client.send(type="hello", token=text)
        assert client.closed()[0] == 4401


@pytest.mark.parametrize(
    "path", ["/v1/collections/other/live", "/v1/topics/todos/subscriptions/1/live", "/live"]
)
def test_an_event_sources_ticket_is_valid_only_for_its_path(
    server: str, account: TenantAccount, path: str
) -> None:
    todos = make_collection(server, account=account)
    text = ticket(server, make_key(account.tenant), live={"collection": todos.name})
    response = requests.get(f"{server}{path}", {"ticket": text}, timeout=60)
    problem(response, 401, "invalid_credentials")


def test_a_ticket_for_a_query_that_cannot_be_live_is_rejected(
    server: str, account: TenantAccount
) -> None:
    caller = with_key(server, make_key(account.tenant))
    body = {"live": {"collection": "todos", "filter": {"$expr": {"$lt": ["$at", "$$NOW"]}}}}
    problem(caller.post("/v1/realtime/tickets", body), 400, "not_live")
