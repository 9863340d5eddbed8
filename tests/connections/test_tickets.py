"""Tickets open one connection, for the page that they were made for."""

from __future__ import annotations

import pytest
from django.utils import timezone

from foundation.scope import scoped
from tenants.models import ApiKey, Tenant
from tests.caller import problem, with_key
from tests.documents.collection import make_collection
from tests.make import MadeTenant, make_key, make_tenant
from tests.realtime.client import opened

PAGE = "https://app.example"


@pytest.fixture
def made() -> MadeTenant:
    made = make_tenant()
    Tenant.objects.using("staff").filter(pk=made.tenant.pk).update(cors_origins=[PAGE])
    return made


def ticket(server: str, key: str, **body: object) -> str:
    answer = with_key(server, key).post("/v1/realtime/tickets", body)
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["ticket"]
    return found


def test_a_ticket_opens_a_connection_once(server: str, made: MadeTenant) -> None:
    text = ticket(server, make_key(made.tenant), origin=PAGE)
    with opened(server, origin=PAGE) as client:
        client.say(type="hello", token=text)
        assert client.next()["type"] == "welcome"
    with opened(server, origin=PAGE) as client:
        client.say(type="hello", token=text)
        assert client.closed()[0] == 4401


def test_a_ticket_is_for_its_origin_alone(server: str, made: MadeTenant) -> None:
    key = make_key(made.tenant)
    for origin in ("https://evil.example", None):
        with opened(server, origin=origin) as client:
            client.say(type="hello", token=ticket(server, key, origin=PAGE))
            assert client.closed()[0] == 4403


def test_a_revoked_keys_ticket_opens_nothing(server: str, made: MadeTenant) -> None:
    key = make_key(made.tenant)
    text = ticket(server, key)
    with scoped(tenant_id=made.tenant.id):
        ApiKey.objects.filter(key_id=key.split("_")[2]).update(revoked_at=timezone.now())
    # The process may believe for a second what it knows of the key.
    with opened(server) as client:
        client.say(type="hello", token=text)
        assert client.closed()[0] == 4401


def test_a_ticket_has_no_more_rights_than_its_key(server: str, made: MadeTenant) -> None:
    todos = make_collection(server, made=made)
    text = ticket(server, make_key(made.tenant, scopes=["documents:read"]))
    with opened(server) as client:
        client.say(type="hello", token=text)
        client.next()
        refused = client.ask("insert", "1", collection=todos.name, document={})
        assert refused["error"]["code"] == "missing_scope"


def test_an_event_sources_ticket_opens_no_websocket(server: str, made: MadeTenant) -> None:
    todos = make_collection(server, made=made)
    text = ticket(server, make_key(made.tenant), live={"collection": todos.name})
    with opened(server) as client:
        client.say(type="hello", token=text)
        assert client.closed()[0] == 4401


def test_a_ticket_for_a_query_that_cannot_be_live_is_rejected(
    server: str, made: MadeTenant
) -> None:
    caller = with_key(server, make_key(made.tenant))
    body = {"live": {"collection": "todos", "filter": {"$expr": {"$lt": ["$at", "$$NOW"]}}}}
    problem(caller.post("/v1/realtime/tickets", body), 400, "not_live")
