"""A collection with a JSON Schema has types of its own."""

from __future__ import annotations

import pytest

from tests.caller import problem, with_key
from tests.documents.collection import CollectionClient, make_collection
from tests.make import unique
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller
from tests.waiting import wait_until

SCHEMA = {
    "type": "object",
    "required": ["title"],
    "properties": {
        "title": {"type": "string"},
        "rank": {"bsonType": ["int", "long"]},
        "share": {"type": ["number", "null"]},
        "done": {"type": "boolean"},
        "state": {"enum": ["open", "closed"]},
        "due": {"bsonType": "date"},
        "price": {"bsonType": "decimal"},
        "owner": {"bsonType": "objectId"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "odd name": {"type": "string"},
        "place": {"type": "object", "properties": {"city": {"type": "string"}}},
        "steps": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"bsonType": "int"}}},
        },
        "any": {"oneOf": [{"type": "string"}, {"type": "number"}, {"type": "object"}]},
    },
}

EVERYTHING = """title rank share done state due price owner tags odd_name place { city }
steps { n } any"""
DOCUMENT = {
    "_id": 1,
    "title": "Sow",
    "rank": 2**40,
    "share": 0.5,
    "done": False,
    "state": "open",
    "due": {"$date": "2026-01-02T03:04:05Z"},
    "price": {"$numberDecimal": "1.10"},
    "owner": {"$oid": "0123456789abcdef01234567"},
    "tags": ["a", "b"],
    "odd name": "odd",
    "place": {"city": "Ulm"},
    "steps": [{"n": 1}, {"n": 5}],
    "any": 7,
}
CONTENT = {
    "title": "Sow",
    "rank": 2**40,
    "share": 0.5,
    "done": False,
    "state": "open",
    "due": "2026-01-02T03:04:05Z",
    "price": "1.10",
    "owner": "0123456789abcdef01234567",
    "tags": ["a", "b"],
    "odd_name": "odd",
    "place": {"city": "Ulm"},
    "steps": [{"n": 1}, {"n": 5}],
    "any": 7,
}


@pytest.fixture
def todos(server: str) -> CollectionClient:
    return make_collection(server, name="todo-items", schema=SCHEMA)


@pytest.fixture
def typed(todos: CollectionClient) -> GraphqlCaller:
    return GraphqlCaller(todos.caller)


def _titles(typed: GraphqlCaller, arguments: str, **variables: object) -> list[str]:
    declared = ", ".join(f"${name}: JSON" for name in variables)
    text = f"query {'(' + declared + ')' if declared else ''} {{ todo_items({arguments}) "
    data = typed.ask(text + "{ nodes { document { title } } } }", **variables)
    return [node["document"]["title"] for node in data["todo_items"]["nodes"]]


def test_documents_have_fields_with_the_schemas_types(
    typed: GraphqlCaller, todos: CollectionClient
) -> None:
    todos.insert(DOCUMENT)
    data = typed.ask(
        f"{{ todo_itemsByKey(key: 1) {{ __typename version document {{ {EVERYTHING} }} }} }}"
    )["todo_itemsByKey"]
    assert data == {"__typename": "TodoItems", "version": 1, "document": CONTENT}


def test_a_document_is_inserted_by_its_fields_and_stored_in_its_types(
    typed: GraphqlCaller, todos: CollectionClient
) -> None:
    given = {**CONTENT, "any": {"free": 1}}
    typed.ask(
        """mutation ($d: TodoItemsInput!) {
             todo_itemsInsert(document: $d, idempotencyKey: "k") { version }
           }""",
        d=given,
    )
    (stored,) = todos.query()
    del stored["_id"]
    assert stored == {**{n: v for n, v in DOCUMENT.items() if n != "_id"}, "any": {"free": 1}}


def test_required_fields_of_the_schema_are_required_inputs(typed: GraphqlCaller) -> None:
    error = typed.refused("mutation { todo_itemsInsert(document: {rank: 1}) { version } }")
    assert error["extensions"]["code"] == "invalid_operation"
    assert "title" in error["message"]


def test_documents_older_than_their_schema_are_returned_as_stored(server: str) -> None:
    collection = make_collection(server, name="old")
    collection.insert({"_id": 1, "rank": "high", "state": "odd"})
    path = f"/api/v1/tenants/{collection.account.slug}/collections/old"
    admin = with_key(server, collection.account.admin_key)
    assert admin.patch(path, {"schema": SCHEMA}).status_code == 200
    graphql = GraphqlCaller(collection.caller)
    text = "{ old { nodes { version document { title rank state tags } } } }"
    wait_until(lambda: graphql.send(text).json().get("data"), what="the schema to be known")
    body = graphql.send(text).json()
    (node,) = body["data"]["old"]["nodes"]
    assert node["version"] == 1
    assert node["document"] == {"title": None, "rank": None, "state": None, "tags": None}
    assert {error["path"][-1] for error in body["errors"]} == {"rank", "state"}


@pytest.mark.parametrize(
    ("given", "titles"),
    [
        ('{title: {eq: "b"}}', ["b"]),
        ('{title: {in: ["a", "c"]}}', ["a", "c"]),
        ('{title: {regex: "^[ab]$"}}', ["a", "b"]),
        ("{rank: {gte: 2}}", ["b", "c"]),
        ("{rank: {gt: 1, lt: 3}}", ["b"]),
        ("{done: {ne: true}}", ["a", "c"]),
        ("{state: {eq: closed}}", ["c"]),
        ('{due: {lt: "2026-01-02T00:00:00Z"}}', ["a"]),
        ('{price: {gt: "2"}}', ["c"]),
        ('{place: {city: {eq: "Ulm"}}}', ["a"]),
        ('{tags: {has: "x"}}', ["a", "b"]),
        ('{tags: {all: ["x", "y"]}}', ["b"]),
        ('{tags: {any: ["y", "z"]}}', ["b", "c"]),
        ("{tags: {size: 2}}", ["b"]),
        ("{steps: {some: {n: {gt: 8}}}}", ["c"]),
        ("{steps: {exists: false}}", ["a"]),
        ('{or: [{title: {eq: "a"}}, {rank: {eq: 3}}]}', ["a", "c"]),
        ('{nor: [{title: {eq: "a"}}]}', ["b", "c"]),
        ('{and: [{rank: {gt: 1}}, {place: {or: [{city: {eq: "Bonn"}}]}}]}', ["b"]),
        ('{odd_name: {eq: "odd"}}', ["c"]),
        ("{}", ["a", "b", "c"]),
    ],
)
def test_filters_by_fields_select_documents(
    typed: GraphqlCaller, todos: CollectionClient, given: str, titles: list[str]
) -> None:
    todos.insert_many(
        [
            {
                "title": "a",
                "rank": 1,
                "due": {"$date": "2026-01-01T00:00:00Z"},
                "place": {"city": "Ulm"},
                "tags": ["x"],
                "price": {"$numberDecimal": "1"},
            },
            {
                "title": "b",
                "rank": 2,
                "done": True,
                "place": {"city": "Bonn"},
                "tags": ["x", "y"],
                "steps": [{"n": 1}],
            },
            {
                "title": "c",
                "rank": 3,
                "state": "closed",
                "tags": ["z"],
                "steps": [{"n": 2}, {"n": 9}],
                "price": {"$numberDecimal": "2.5"},
                "odd name": "odd",
            },
        ]
    )
    assert _titles(typed, f"filter: {given}, sort: [{{by: title}}]") == titles


def test_sorts_by_fields_order_documents(typed: GraphqlCaller, todos: CollectionClient) -> None:
    todos.insert_many(
        [
            {"title": title, "rank": int(rank), "place": {"city": city}}
            for title, rank, city in ("a1z", "b1y", "c2x")
        ]
    )
    assert _titles(typed, "sort: [{by: rank, direction: DESC}, {by: title}]") == ["c", "a", "b"]
    assert _titles(typed, "sort: [{by: place_city}]") == ["c", "b", "a"]


def test_sorts_by_times_order_documents(typed: GraphqlCaller, todos: CollectionClient) -> None:
    for title in "cab":
        todos.insert({"title": title, "rank": 1})
    for field, name in (("createdAt", "$created"), ("updatedAt", "$updated")):
        for word, direction in (("ASC", 1), ("DESC", -1)):
            expected = [document["title"] for document in todos.query(sort=[[name, direction]])]
            assert _titles(typed, f"sort: [{{by: {field}, direction: {word}}}]") == expected
    by_both = "sort: [{by: rank}, {by: updatedAt, direction: DESC}]"
    expected = [document["title"] for document in todos.query(sort=[["$updated", -1]])]
    assert _titles(typed, by_both) == expected


def test_a_sort_field_for_a_time_is_renamed_if_documents_have_a_field_of_its_name(
    server: str,
) -> None:
    schema = {"type": "object", "properties": {"createdAt": {"bsonType": "int"}}}
    notes = make_collection(server, name="notes", schema=schema)
    for number in (2, 3, 1):
        notes.insert({"createdAt": number})
    caller = GraphqlCaller(notes.caller)
    for field, sort in (("createdAt", "createdAt"), ("createdAt_", "$created")):
        text = f"{{ notes(sort: [{{by: {field}}}]) {{ nodes {{ document {{ createdAt }} }} }} }}"
        documents = [node["document"] for node in caller.ask(text)["notes"]["nodes"]]
        expected = [document["createdAt"] for document in notes.query(sort=[[sort, 1]])]
        assert [document["createdAt"] for document in documents] == expected


def test_filters_can_also_use_the_query_language(
    typed: GraphqlCaller, todos: CollectionClient
) -> None:
    todos.insert_many([{"title": "a", "rank": 1}, {"title": "b", "rank": 2}])
    result = _titles(typed, "filter: {match: $m}", m={"$expr": {"$gt": ["$rank", 1]}})
    assert result == ["b"]


def test_a_global_id_finds_a_document_as_its_collections_type(
    typed: GraphqlCaller, todos: CollectionClient
) -> None:
    todos.insert({"_id": 3, "title": "x"})
    created = typed.ask("{ todo_items { nodes { id } } }")["todo_items"]["nodes"][0]
    data = typed.ask(
        "query ($id: ID!) { node(id: $id) { ... on TodoItems { document { title } } } }",
        id=created["id"],
    )
    assert data["node"]["document"]["title"] == "x"


def test_a_new_collection_is_in_the_schema_within_seconds(server: str) -> None:
    first = make_collection(server)
    graphql = GraphqlCaller(first.caller)
    graphql.ask('{ count(collection: "' + first.name + '") }')
    name = unique("late").replace("-", "_")
    make_collection(server, account=first.account, name=name, schema=SCHEMA)
    wait_until(
        lambda: "errors" not in graphql.send(f"{{ {name} {{ totalCount }} }}").json(),
        what="the schema to have the collection",
    )


def test_collections_named_like_common_types_get_other_names(
    server: str,
) -> None:
    first = make_collection(server, name="documents", schema=SCHEMA)
    make_collection(server, account=first.account, name="tenant", schema=SCHEMA)
    make_collection(server, account=first.account, name="api_key", schema=SCHEMA)
    graphql = GraphqlCaller(first.caller)
    first.insert({"title": "x"})
    data = graphql.ask(
        """{ documents_ { __typename nodes { document { title } } }
             tenant_ { totalCount }
             api_key { __typename }
             documents(collection: "documents") { totalCount } }"""
    )
    assert data["documents_"]["nodes"][0]["document"] == {"title": "x"}
    assert data["documents"]["totalCount"] == 1


def test_reserved_names_are_those_of_the_roots_that_a_collection_could_be_called() -> None:
    from documents.collections.field_names import RESERVED
    from rillbase_server.graphql.assembly import without_collections

    schema = without_collections().schema
    roots = (schema.query_type, schema.mutation_type, schema.subscription_type)
    lower = {name for root in roots if root for name in root.fields if name == name.lower()}
    assert lower - {"transact"} == RESERVED


def test_names_that_would_collide_are_rejected(server: str) -> None:
    first = make_collection(server, name="a-b", schema=SCHEMA)
    admin = with_key(server, first.account.admin_key)
    path = f"/api/v1/tenants/{first.account.slug}/collections"
    assert admin.post(path, {"name": "a_b"}).status_code == 201
    problem(admin.patch(f"{path}/a_b", {"schema": SCHEMA}), 409, "name_taken")
    two = {"type": "object", "properties": {"a b": {}, "a_b": {}}}
    schema = {"type": "object", "properties": {"in": two}}
    refusal = problem(admin.post(path, {"name": "c", "schema": schema}), 400, "invalid_schema")
    assert refusal["errors"][0]["pointer"] == "/schema/properties/in/properties"


def test_collections_named_like_types_of_others_get_their_own_types(server: str) -> None:
    first = make_collection(server, name="todos", schema=SCHEMA)
    for name in ("todos-content", "todos-group", "lookup-one"):
        make_collection(server, account=first.account, name=name, schema=SCHEMA)
    data = GraphqlCaller(first.caller).ask(
        "{ todos { totalCount } todos_content { totalCount } lookup_one { totalCount } }"
    )
    assert [item["totalCount"] for item in data.values()] == [0, 0, 0]
