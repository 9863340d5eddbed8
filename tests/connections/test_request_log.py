"""Entries of the request log about connections, and from several servers."""

from __future__ import annotations

import signal
from typing import Any
from urllib.parse import urlencode

import pytest

from tenants.request_log import recorder
from tests.caller import Caller, signed_in, with_key
from tests.documents.collection import CollectionClient, make_collection
from tests.make import TenantAccount, make_tenant
from tests.own_server import another_server
from tests.realtime.client import greeted, opened
from tests.rillbase_server.graphql.graphql_socket import greeted as greeted_by_graphql
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(180)


def entries(owner: Caller, account: TenantAccount, **filters: str) -> list[dict[str, Any]]:
    """Return the log of a tenant, oldest entries first."""
    recorder.flush()
    response = owner.get(f"/api/v1/tenants/{account.slug}/request-log?{urlencode(filters)}")
    assert response.status_code == 200, response.text
    items: list[dict[str, Any]] = response.json()["items"]
    return items[::-1]


def owner_of(server: str, notes: CollectionClient) -> Caller:
    return signed_in(server, notes.account.owner)


def test_a_websocket_and_its_messages_have_one_request_id(server: str) -> None:
    notes = make_collection(server, name="notes")
    owner = owner_of(server, notes)
    with greeted(server, notes.account.admin_key) as client:
        client.ask("insert", "i1", collection="notes", document={"_id": "secret-id"})
        client.ask("insert", "i2", collection="notes", document={"_id": "secret-id"})
        client.send(type="sesame-secret", id="i3")
        client.answer("i3")

    def recorded() -> list[dict[str, Any]]:
        return entries(owner, notes.account, method="WS")

    wait_until(lambda: len(recorded()) == 5, what="the end of the connection to be recorded")
    log = recorded()
    assert [(e["kind"], e["route"], e["status"], e["code"]) for e in log] == [
        ("opened", "/v1/realtime", 101, None),
        ("message", "insert notes", 200, None),
        ("message", "insert notes", 409, "duplicate_id"),
        ("message", "message", 400, "invalid_body"),
        ("closed", "/v1/realtime", 1000, None),
    ]
    assert len({e["request_id"] for e in log}) == 1
    assert all(e["actor"].startswith("api_key:") for e in log)
    assert log[4]["bytes_in"] > log[1]["bytes_in"] > 0
    assert log[4]["bytes_out"] > log[1]["bytes_out"] > 0


def test_a_connection_that_is_not_admitted_has_no_entry(server: str) -> None:
    account = make_tenant()
    with opened(server) as client:
        client.send(type="hello", token=account.admin_key + "x")
        assert client.closed()[0] == 4401
    assert entries(signed_in(server, account.owner), account) == []


def test_operations_of_a_graphql_socket_are_recorded(server: str) -> None:
    notes = make_collection(server, name="notes")
    owner = owner_of(server, notes)
    with greeted_by_graphql(server, token=notes.account.admin_key) as client:
        client.subscribe("a", "{ __typename }")
        client.payload("a")
        assert client.next()["type"] == "complete"
        client.subscribe("b", "{ nothing }")
        assert client.next()["type"] == "error"

    def recorded() -> list[dict[str, Any]]:
        return entries(owner, notes.account, method="WS")

    wait_until(lambda: len(recorded()) == 4, what="the end of the connection to be recorded")
    assert [(e["kind"], e["route"], e["code"]) for e in recorded()] == [
        ("opened", "/graphql", None),
        ("message", "/graphql operation", None),
        ("message", "/graphql operation", "invalid_operation"),
        ("closed", "/graphql", None),
    ]


def test_all_servers_write_to_one_log_which_outlives_them(server: str) -> None:
    notes = make_collection(server, name="notes")
    owner = owner_of(server, notes)
    with another_server() as second:
        other = with_key(second.url, notes.account.admin_key)
        other.get(f"{notes.path}/documents/a", X_Request_Id="by-the-second")
        notes.caller.get(f"{notes.path}/documents/a", X_Request_Id="by-the-first")
        # It writes the rest before it stops.
        second.process.send_signal(signal.SIGTERM)
        second.process.wait(timeout=60)
    assert [e["request_id"] for e in entries(owner, notes.account, status="404")] == [
        "by-the-second",
        "by-the-first",
    ]


def test_a_running_server_writes_its_log_every_few_seconds(server: str) -> None:
    notes = make_collection(server, name="notes")
    owner = owner_of(server, notes)
    with another_server() as second:
        other = with_key(second.url, notes.account.admin_key)
        other.get(f"{notes.path}/documents/a", X_Request_Id="by-the-second")
        wait_until(
            lambda: bool(entries(owner, notes.account, request_id="by-the-second")),
            what="the other server to write its log",
        )
