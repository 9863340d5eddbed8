"""Writes and queries over a connection are the REST calls of the same names."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tenants.models import Quota
from tests.documents.collection import CollectionClient, make_collection
from tests.make import make_key, make_tenant
from tests.realtime.client import Client, greeted


@pytest.fixture
def todos(server: str) -> CollectionClient:
    return make_collection(server)


@pytest.fixture
def client(server: str, todos: CollectionClient) -> Iterator[Client]:
    with greeted(server, make_key(todos.account.tenant)) as client:
        yield client


def test_a_document_lives_and_dies_over_a_connection(
    client: Client, todos: CollectionClient
) -> None:
    where = {"collection": todos.name}
    created = client.ask("insert", "1", document={"_id": "a", "n": 1}, **where)
    assert (created["type"], created["key"], created["version"]) == ("ack", "a", 1)
    assert created["document"] == {"_id": "a", "n": 1}
    changed = client.ask("update", "2", key="a", update={"$inc": {"n": 1}}, **where)
    assert (changed["version"], changed["document"]["n"]) == (2, 2)
    merged = client.ask("update", "3", key="a", patch={"m": 5}, **where)
    assert merged["document"] == {"_id": "a", "n": 2, "m": 5}
    replaced = client.ask("replace", "4", key="a", document={"n": 9}, **where)
    assert replaced["document"] == {"_id": "a", "n": 9}
    result = client.ask("query", "5", filter={"n": 9}, **where)
    assert [item["id"] for item in result["items"]] == ["a"]
    assert result["next_cursor"] is None
    assert client.ask("delete", "6", key="a", **where) == {"type": "ack", "id": "6"}
    assert todos.query() == []


def test_every_kind_of_id_names_its_document(client: Client, todos: CollectionClient) -> None:
    for number, key in enumerate(
        [{"$oid": "6740a1b2c3d4e5f601234567"}, 5, "a/b", "~", {"x": 1, "y": 2}, ""]
    ):
        where = {"collection": todos.name}
        created = client.ask("insert", f"i{number}", document={"_id": key}, **where)
        assert created["key"] == key
        updated = client.ask("update", f"u{number}", key=key, update={"$set": {"a": 1}}, **where)
        assert updated["version"] == 2


def test_requests_are_rejected_with_the_errors_of_rest(
    client: Client, todos: CollectionClient
) -> None:
    where = {"collection": todos.name}
    client.ask("insert", "1", document={"_id": "a"}, **where)
    again = client.ask("insert", "2", document={"_id": "a"}, **where)
    assert (again["type"], again["error"]["code"]) == ("error", "duplicate_id")
    absent = client.ask("update", "3", key="b", update={"$set": {"n": 1}}, **where)
    assert absent["error"]["code"] == "not_found"
    stale = client.ask("replace", "4", key="a", document={}, if_version=7, **where)
    assert stale["error"]["code"] == "precondition_failed"
    bad = client.ask("query", "5", filter={"$nonsense": 1}, **where)
    assert bad["error"]["errors"][0]["pointer"] == "/filter/$nonsense"


def test_a_write_with_an_idempotency_key_takes_effect_once(
    client: Client, todos: CollectionClient
) -> None:
    key = secrets.token_hex(8)
    members = {"collection": todos.name, "document": {"n": 1}, "idempotency_key": key}
    first = client.ask("insert", "1", **members)
    second = client.ask("insert", "2", **members)
    assert first["key"] == second["key"]
    assert len(todos.query()) == 1


def test_writes_to_one_document_happen_in_their_order(
    client: Client, todos: CollectionClient
) -> None:
    where = {"collection": todos.name, "key": "a"}
    client.ask("insert", "0", collection=todos.name, document={"_id": "a", "log": []})
    for number in range(40):
        client.send(type="update", id=f"w{number}", update={"$push": {"log": number}}, **where)
    for number in range(40):
        assert client.answer(f"w{number}")["type"] == "ack"
    assert todos.query()[0]["log"] == list(range(40))


def test_an_invalid_message_leaves_the_connection_open(client: Client) -> None:
    for text in ("nonsense", "[]", '{"id":"x"}', '{"type":5}', '{"type":"dance","id":"d"}'):
        client.send_raw(text)
        assert client.next()["error"]["status"] == 400
    unknown = client.ask("ping", "p", more=1)
    assert unknown["error"]["errors"] == [
        {"pointer": "/more", "code": "unknown_field", "detail": "Unknown field."}
    ]
    assert client.ask("ping", "q")["type"] == "pong"


def test_scopes_and_collections_of_a_key_bind_it_here_too(
    server: str, todos: CollectionClient
) -> None:
    reader = make_key(todos.account.tenant, scopes=["documents:read"])
    with greeted(server, reader) as client:
        refusal = client.ask("insert", "1", collection=todos.name, document={})
        assert refusal["error"]["code"] == "missing_scope"
    elsewhere = make_key(todos.account.tenant, collections=["other"])
    with greeted(server, elsewhere) as client:
        refusal = client.ask("query", "1", collection=todos.name)
        assert refusal["error"]["code"] == "forbidden"


def test_another_tenants_key_finds_nothing(server: str, todos: CollectionClient) -> None:
    todos.insert({"_id": "a", "secret": True})
    with greeted(server, make_key(make_tenant().tenant)) as client:
        attempts: dict[str, dict[str, object]] = {
            "query": {},
            "insert": {"document": {}},
            "update": {"key": "a", "update": {"$set": {"stolen": True}}},
            "delete": {"key": "a"},
        }
        for kind, members in attempts.items():
            refusal = client.ask(kind, kind, collection=todos.name, **members)
            assert refusal["error"]["code"] == "not_found"
    assert todos.query() == [{"_id": "a", "secret": True}]


def test_messages_count_against_the_tenants_rate(server: str) -> None:
    account = make_tenant()
    few = {"requests_per_s": 1, "requests_burst": 3}
    Quota(tenant=account.tenant, limits=few).save(using="staff")
    todos = make_collection(server, account=account)
    with greeted(server, make_key(account.tenant)) as client:
        for number in range(60):
            client.send(type="query", id=str(number), collection=todos.name)
        answers = [client.answer(str(number)) for number in range(60)]
    codes = [answer.get("error", {}).get("code") for answer in answers]
    assert "rate_limited" in codes
    assert codes[0] is None
