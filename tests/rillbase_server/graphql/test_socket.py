"""Operations and subscriptions over a WebSocket."""

from __future__ import annotations

import pytest

from tests.documents.collection import CollectionClient, make_collection
from tests.rillbase_server.graphql.graphql_socket import GraphqlSocket, greeted, opened

WATCH = """
subscription ($c: String!, $filter: JSON, $sort: JSON, $limit: Int, $resume: String) {
  documents(collection: $c, filter: $filter, sort: $sort, limit: $limit, resume: $resume) {
    kind part last items { key document } seq match node { key version document } index oldIndex
    state reason
  }
}
"""


def key_of(things: CollectionClient) -> str:
    return things.caller.headers["Authorization"].removeprefix("Bearer ")


def test_queries_and_mutations_are_answered_once(server: str, things: CollectionClient) -> None:
    with greeted(server, token=key_of(things)) as graphql_socket:
        graphql_socket.subscribe(
            "1",
            "mutation ($c: String!) { insertDocument(collection: $c, document: {_id: 1}) { key } }",
            c=things.name,
        )
        assert graphql_socket.payload("1") == {"data": {"insertDocument": {"key": 1}}}
        assert graphql_socket.next() == {"id": "1", "type": "complete"}
        graphql_socket.subscribe("2", f'{{ count(collection: "{things.name}") }}')
        assert graphql_socket.payload("2") == {"data": {"count": 1}}


def test_the_control_plane_is_called_with_the_credentials_of_connection_init(
    server: str, things: CollectionClient
) -> None:
    slug = things.account.slug
    with greeted(server, token=things.account.admin_key) as graphql_socket:
        graphql_socket.subscribe("1", "query ($s: String!) { tenant(slug: $s) { slug } }", s=slug)
        assert graphql_socket.payload("1") == {"data": {"tenant": {"slug": slug}}}


@pytest.mark.usefixtures("live")
def test_a_subscription_delivers_the_answer_and_then_each_change(
    server: str, things: CollectionClient
) -> None:
    things.insert_many([{"_id": n, "n": n} for n in range(3)])
    with greeted(server, token=key_of(things)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, c=things.name, filter={"n": {"$gte": 1}})
        (result,) = graphql_socket.until_ready("s", "documents")
        assert result["kind"] == "RESULT"
        assert [item["key"] for item in result["items"]] == [1, 2]
        things.insert({"_id": 7, "n": 7})
        added = graphql_socket.event("s", "documents")
        assert (added["match"], added["node"]["key"], added["seq"]) == ("ADD", 7, 1)
        things.caller.delete(f"{things.path}/documents/~1")
        removed = graphql_socket.event("s", "documents")
        assert (removed["match"], removed["node"]["key"]) == ("REMOVE", 1)
        graphql_socket.send(type="complete", id="s")
        things.insert({"_id": 8, "n": 8})
        graphql_socket.send(type="subscribe", id="s", payload={"query": "{ __typename }"})
        assert graphql_socket.payload("s") == {"data": {"__typename": "Query"}}


@pytest.mark.usefixtures("live")
def test_a_typed_subscription_delivers_changes_in_its_types(server: str) -> None:
    schema = {"properties": {"title": {"type": "string"}, "rank": {"bsonType": "int"}}}
    todos = make_collection(server, name="todos", schema={"type": "object", **schema})
    with greeted(server, token=key_of(todos)) as graphql_socket:
        graphql_socket.subscribe(
            "s",
            """subscription {
                 todos(filter: {rank: {gt: 1}}, sort: [{by: rank}], limit: 2) {
                   kind match index items { document { title } } node { document { title } }
                 }
               }""",
        )
        (result,) = graphql_socket.until_ready("s", "todos")
        assert result["items"] == []
        todos.insert({"title": "a", "rank": 5})
        first = graphql_socket.event("s", "todos")
        assert (first["match"], first["index"]) == ("ADD", 0)
        assert first["node"]["document"] == {"title": "a"}


@pytest.mark.usefixtures("live")
def test_a_resumed_subscription_gets_missed_changes(server: str, things: CollectionClient) -> None:
    with greeted(server, token=key_of(things)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, c=things.name)
        token = None
        while True:
            payload = graphql_socket.payload("s")
            token = payload.get("extensions", {}).get("resume", token)
            if payload["data"]["documents"]["kind"] == "READY":
                break
    assert token is not None
    things.insert({"_id": "missed"})
    with greeted(server, token=key_of(things)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, c=things.name, resume=token)
        frame = graphql_socket.event("s", "documents")
        assert (frame["kind"], frame["match"]) == ("EVENT", "ADD")
        assert frame["node"]["key"] == "missed"


@pytest.mark.usefixtures("live")
def test_a_subscription_ends_within_a_second_of_its_keys_revocation(
    server: str, things: CollectionClient
) -> None:
    from django.utils import timezone

    from tenants.models import ApiKey

    with greeted(server, token=key_of(things)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, c=things.name)
        graphql_socket.until_ready("s", "documents")
        ApiKey.unscoped.using("relay").filter(tenant_id=things.account.tenant.id).update(
            revoked_at=timezone.now()
        )
        assert graphql_socket.closed() == 4403


@pytest.mark.usefixtures("live")
def test_a_rejected_subscription_gets_its_error_code(server: str, things: CollectionClient) -> None:
    with greeted(server, token=key_of(things)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, c="nowhere")
        message = graphql_socket.next()
        assert (message["type"], message["id"]) == ("error", "s")
        assert message["payload"][0]["extensions"]["code"] == "not_found"
        graphql_socket.subscribe("s", "subscription { nope }")
        message = graphql_socket.next()
        assert message["payload"][0]["extensions"]["code"] == "invalid_operation"


def test_another_tenants_documents_cannot_be_subscribed_to(
    server: str, things: CollectionClient
) -> None:
    strange = make_collection(server)
    with greeted(server, token=key_of(things)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, c=strange.name)
        assert graphql_socket.next()["payload"][0]["extensions"]["code"] == "not_found"


def test_credentials_may_be_sent_as_headers(server: str, things: CollectionClient) -> None:
    with opened(server, dict(things.caller.headers)) as graphql_socket:
        graphql_socket.send(type="connection_init")
        assert graphql_socket.next() == {"type": "connection_ack"}


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ([{"type": "connection_init", "payload": {"token": "rbk_test_wrong"}}], 4401),
        ([{"type": "connection_init"}], 4401),
        ([{"type": "subscribe", "id": "1", "payload": {"query": "{ __typename }"}}], 4401),
    ],
)
def test_unauthenticated_connections_are_closed(
    server: str, said: list[dict[str, object]], code: int
) -> None:
    with opened(server) as graphql_socket:
        for message in said:
            graphql_socket.send(**message)
        assert graphql_socket.closed() == code


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"type": "connection_init"}, 4429),
        ({"type": "nope"}, 4400),
        ({"type": "subscribe", "payload": {"query": "{ __typename }"}}, 4400),
    ],
)
def test_protocol_errors_have_their_close_codes(
    server: str, things: CollectionClient, said: dict[str, object], code: int
) -> None:
    with greeted(server, token=key_of(things)) as graphql_socket:
        graphql_socket.send(**said)
        assert graphql_socket.closed() == code


def test_an_id_in_use_closes_the_connection(server: str, things: CollectionClient) -> None:
    with greeted(server, token=key_of(things)) as graphql_socket:
        for _ in range(2):
            graphql_socket.subscribe("s", WATCH, c=things.name)
        assert graphql_socket.closed() == 4409


def test_pings_are_answered(server: str, things: CollectionClient) -> None:
    with greeted(server, token=key_of(things)) as graphql_socket:
        graphql_socket.send(type="ping")
        assert graphql_socket.next() == {"type": "pong"}


def test_subscriptions_are_in_the_tenants_live_list(
    server: str, things: CollectionClient, live: None
) -> None:
    from tests.caller import with_key
    from tests.waiting import wait_until

    admin = with_key(server, things.account.admin_key)
    path = f"/api/v1/tenants/{things.account.slug}/subscriptions"
    with greeted(server, token=key_of(things)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH, c=things.name)
        graphql_socket.until_ready("s", "documents")
        wait_until(lambda: bool(admin.get(path).json()["items"]), what="the list to show it")
        (shown,) = admin.get(path).json()["items"]
        assert shown["collection"] == things.name
        assert admin.delete(f"{path}/{shown['id']}").status_code == 204
        message = _ending(graphql_socket)
        assert (message["type"], message["id"]) == ("error", "s")


def _ending(graphql_socket: GraphqlSocket) -> dict[str, object]:
    while (message := graphql_socket.next())["type"] == "next":
        continue
    return message
