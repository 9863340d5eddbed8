"""Documents that others refer to: shown with those, in any collection and in types of their own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.caller import with_key
from tests.documents.collection import CollectionClient, make_collection
from tests.make import make_key
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller
from tests.rillbase_server.graphql.graphql_socket import greeted
from tests.rillbase_server.graphql.test_reading import reading, watched
from tests.rillbase_server.graphql.test_socket import key_of

TODOS = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "owner": {"type": "string"},
        "place": {"type": "object", "properties": {"city": {"type": "string"}}},
        "steps": {
            "type": "array",
            "items": {"type": "object", "properties": {"by": {"type": "string"}}},
        },
        "any": {},
    },
}
PEOPLE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "chief": {"type": "string"}},
}
ANY = """
query ($c: String!, $l: JSON, $p: JSON, $first: Int) {
  documents(collection: $c, lookup: $l, projection: $p, first: $first) { nodes { key document } }
}
"""
PAGE = """
{
  todos(first: 10, sort: [{by: title}]) {
    nodes {
      document { title }
      lookupOne(local: owner) { people { key document { name } } }
      lookupMany(local: steps_by) { people { document { name } } }
      city: lookupOne(local: place_city) { document(collection: "cities") { document } }
    }
    edges { node { again: lookupOne(local: owner) { people { document { name } } } } }
  }
}
"""
CHIEFS = """
query ($first: Int) {
  todos(first: $first) {
    nodes {
      lookupOne(local: owner) {
        people { lookupOne(local: chief) { people { document { name } } } }
      }
    }
  }
}
"""
WATCH = """
subscription ($deliver: Deliver! = EVENTS) {
  todos(sort: [{by: title}], deliver: $deliver) {
    kind items { ...Shown } seq match index node { ...Shown } transaction { index count }
  }
}
fragment Shown on Todos {
  key lookupOne(local: owner) { people { key document { name } } }
}
"""


@pytest.fixture
def todos(server: str) -> CollectionClient:
    """Todos that refer to people, who have a type, and to cities, which have none."""
    collection = make_collection(server, name="todos", schema=TODOS)
    people = make_collection(server, account=collection.account, name="people", schema=PEOPLE)
    cities = make_collection(server, account=collection.account, name="cities")
    people.insert_many(
        [{"_id": "ann", "name": "Ann", "chief": "bob"}, {"_id": "bob", "name": "Bob"}]
    )
    cities.insert({"_id": "ulm", "size": 3})
    collection.insert_many(
        [
            {
                "_id": 1,
                "title": "a",
                "owner": "ann",
                "place": {"city": "ulm"},
                "steps": [{"by": "bob"}, {"by": "ann"}, {"by": "eve"}],
            },
            {"_id": 2, "title": "b", "owner": "eve", "steps": []},
            {"_id": 3, "title": "c"},
        ]
    )
    return collection


@pytest.fixture
def typed(todos: CollectionClient) -> GraphqlCaller:
    return GraphqlCaller(todos.caller)


def ann(**more: object) -> dict[str, Any]:
    return {"people": {"document": {"name": "Ann"}, **more}}


def test_documents_of_any_collection_have_lookups(
    typed: GraphqlCaller, todos: CollectionClient
) -> None:
    lookup = [{"from": "people", "local": "owner", "as": "by"}]
    data = typed.ask(ANY, c=todos.name, l=lookup, p={"by.name": 1})["documents"]["nodes"]
    assert [node["document"] for node in data] == [
        {"_id": 1, "by": {"name": "Ann"}},
        {"_id": 2},
        {"_id": 3},
    ]
    wrong = typed.refused(ANY, c=todos.name, l=[{"from": "people", "local": "owner"}])
    assert wrong["extensions"]["code"] == "invalid_lookup"
    assert wrong["extensions"]["errors"][0]["pointer"] == "/lookup/0"


def test_typed_documents_look_up_typed_documents(typed: GraphqlCaller) -> None:
    data = typed.ask(PAGE)["todos"]
    assert data["nodes"] == [
        {
            "document": {"title": "a"},
            "lookupOne": ann(key="ann"),
            "lookupMany": {"people": [{"document": {"name": n}} for n in ("Bob", "Ann")]},
            "city": {"document": {"document": {"_id": "ulm", "size": 3}}},
        },
        {
            "document": {"title": "b"},
            "lookupOne": {"people": None},
            "lookupMany": {"people": []},
            "city": {"document": None},
        },
        {
            "document": {"title": "c"},
            "lookupOne": {"people": None},
            "lookupMany": {"people": None},
            "city": {"document": None},
        },
    ]
    assert data["edges"][0]["node"]["again"] == ann()


def test_a_page_and_what_it_looks_up_are_one_query(
    typed: GraphqlCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed.ask(PAGE)
    with watched(monkeypatch) as seen:
        typed.ask(PAGE)
    # The documents, and those of two collections that they refer to.
    assert reading(seen, "documents_document") == 3


def test_a_single_document_has_lookups(
    typed: GraphqlCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = "lookupOne(local: owner) { people { document { name } } }"
    one = typed.ask(f"{{ todosByKey(key: 1) {{ id {shown} }} }}")["todosByKey"]
    assert one["lookupOne"] == ann()
    by_id = "query ($id: ID!) { node(id: $id) { ... on Todos { " + shown + " } } }"
    assert typed.ask(by_id, id=one["id"])["node"]["lookupOne"] == ann()
    insert = f'mutation {{ todosInsert(document: {{owner: "ann"}}) {{ {shown} }} }}'
    assert typed.ask(insert)["todosInsert"]["lookupOne"] == ann()
    many = " ".join(f"t{n}: todosByKey(key: {n}) {{ {shown} }}" for n in (1, 2, 3))
    with watched(monkeypatch) as seen:
        assert typed.ask(f"{{ {many} }}")["t1"]["lookupOne"] == ann()
    # Themselves by their keys, and together what they refer to.
    by_keys = [sql for sql in seen if "documents_document" in sql and "key = ANY" in sql]
    assert len(by_keys) == 2


def test_lookups_can_be_nested(typed: GraphqlCaller) -> None:
    first = typed.ask(CHIEFS, first=3)["todos"]["nodes"][0]
    chief = first["lookupOne"]["people"]["lookupOne"]
    assert chief == {"people": {"document": {"name": "Bob"}}}


def test_several_documents_for_a_single_lookup_are_an_error_at_its_path(
    typed: GraphqlCaller, todos: CollectionClient
) -> None:
    todos.insert({"_id": 0, "title": "0", "any": ["ann", "bob"]})
    one = "todosByKey(key: 0) { lookupOne(local: any) { people { key } } }"
    body = typed.send(f"{{ {one} }}").json()
    assert body["data"]["todosByKey"]["lookupOne"] == {"people": None}
    assert body["errors"][0]["path"] == ["todosByKey", "lookupOne", "people"]
    both = typed.ask(one.replace("lookupOne", "lookupMany").join("{}"))
    assert [item["key"] for item in both["todosByKey"]["lookupMany"]["people"]] == ["ann", "bob"]


def test_a_key_looks_up_only_collections_that_it_may_read(
    todos: CollectionClient, server: str
) -> None:
    key = make_key(todos.account.tenant, scopes=["documents:read"], collections=["todos", "people"])
    error = GraphqlCaller(with_key(server, key)).refused(PAGE)
    assert error["extensions"]["code"] == "forbidden"


def test_the_weight_of_a_lookup_is_its_maximum_size(typed: GraphqlCaller) -> None:
    deep = "people { id key version createdAt updatedAt document { name } }"
    lists = f"lookupMany(local: steps_by) {{ {deep} }}"
    typed.ask(f"{{ todos(first: 1000) {{ nodes {{ {lists} }} }} }}")
    several = " ".join(f"m{n}: {lists}" for n in range(3))
    error = typed.refused(f"{{ todos(first: 1000) {{ nodes {{ {several} }} }} }}")
    assert error["extensions"]["code"] == "query_too_expensive"
    lookup = [{"from": "people", "local": "owner", "as": f"by{n}"} for n in range(21)]
    error = typed.refused(ANY, c="todos", l=lookup, first=1000)
    assert error["extensions"]["code"] == "query_too_expensive"


@pytest.mark.usefixtures("live")
def test_a_change_of_a_looked_up_document_is_delivered(
    server: str, todos: CollectionClient
) -> None:
    with greeted(server, token=key_of(todos)) as graphql_socket:
        graphql_socket.subscribe("s", WATCH)
        (result,) = graphql_socket.until_ready("s", "todos")
        assert [item["key"] for item in result["items"]] == [1, 2, 3]
        assert result["items"][0]["lookupOne"] == ann(key="ann")
        path = "/v1/collections/people/documents"
        todos.caller.post(path, {"_id": "eve", "name": "Eve"})
        answer = graphql_socket.event("s", "todos")
        assert (answer["match"], answer["index"], answer["seq"]) == ("CHANGE", 1, 1)
        eve = {"people": {"key": "eve", "document": {"name": "Eve"}}}
        assert answer["node"] == {"key": 2, "lookupOne": eve}
        todos.caller.delete(f"{todos.path}/documents/~2")
        answer = graphql_socket.event("s", "todos")
        assert (answer["match"], answer["node"]) == (
            "REMOVE",
            {"key": 2, "lookupOne": {"people": None}},
        )


@pytest.mark.usefixtures("live")
def test_lookups_of_any_collection_can_be_subscribed_to(
    server: str, todos: CollectionClient
) -> None:
    text = """subscription ($c: String!, $l: JSON) {
      documents(collection: $c, lookup: $l, limit: 1) { kind items { document } node { document } }
    }"""
    lookup = [{"from": "cities", "local": "place.city", "as": "city"}]
    with greeted(server, token=key_of(todos)) as graphql_socket:
        graphql_socket.subscribe("s", text, c=todos.name, l=lookup)
        (result,) = graphql_socket.until_ready("s", "documents")
        assert result["items"][0]["document"]["city"] == {"_id": "ulm", "size": 3}
        todos.caller.delete("/v1/collections/cities/documents/ulm")
        assert graphql_socket.event("s", "documents")["node"]["document"]["city"] is None


@pytest.mark.usefixtures("live")
def test_queries_that_cannot_be_live_are_rejected(server: str, todos: CollectionClient) -> None:
    text = """subscription { todos { items { lookupOne(local: owner) { people {
      lookupOne(local: chief) { people { key } } } } } } }"""
    with greeted(server, token=key_of(todos)) as graphql_socket:
        graphql_socket.subscribe("s", text)
        message = graphql_socket.next()
        assert message["type"] == "error"
        assert message["payload"][0]["extensions"]["code"] == "not_live"
