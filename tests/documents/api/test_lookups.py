"""Queries with lookups: their results, compared with SQL, and what they reject."""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connections

from documents.backend import Backend
from documents.store import queries
from documents.store.lookups import read_sides
from documents.store.write import WriteCall
from documents.store.writer import write
from rillbase_native import Operation, Operations, Value
from tests.caller import problem, with_key
from tests.documents.collection import CollectionClient, make_collection
from tests.make import make_key

LOOKUP = [
    {"from": "people", "local": "owner", "as": "by"},
    {"from": "tags", "local": "about.tags", "as": "tags"},
]


@pytest.fixture(scope="module")
def todos(server: str, backend: Backend) -> CollectionClient:
    """A collection of 300 todos whose owners and tags exist, do not exist, or are missing."""
    collection = make_collection(server, name="todos")
    people = make_collection(server, account=collection.account, name="people")
    tags = make_collection(server, account=collection.account, name="tags")
    people.insert_many([{"_id": f"p{number}", "name": f"name {number}"} for number in range(20)])
    tags.insert_many([{"_id": number, "text": f"tag {number}"} for number in range(10)])
    rng = random.Random(7)
    documents: list[dict[str, Any]] = []
    for number in range(300):
        document: dict[str, Any] = {"_id": number, "rank": rng.randrange(50)}
        if number % 7:
            document["owner"] = f"p{rng.randrange(30)}"
        if number % 3:
            document["about"] = {"tags": [rng.randrange(15) for _ in range(rng.randrange(4))]}
        documents.append(document)
    collection.insert_many(documents)
    return collection


def by_sql(collection: CollectionClient, least: int) -> list[Any]:
    """Look up the same in PostgreSQL."""
    everything = [
        json.dumps(collection.query(limit=1000)),
        *(
            json.dumps(
                [
                    item["document"]
                    for item in collection.caller.post(
                        f"/v1/collections/{name}/query", {"limit": 1000}
                    ).json()["items"]
                ]
            )
            for name in ("people", "tags")
        ),
    ]
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "WITH t AS (SELECT * FROM jsonb_array_elements(%s::jsonb) AS x(d)),"
            " p AS (SELECT * FROM jsonb_array_elements(%s::jsonb) AS x(d)),"
            " g AS (SELECT * FROM jsonb_array_elements(%s::jsonb) AS x(d))"
            " SELECT (t.d->>'_id')::int, p.d,"
            " CASE WHEN t.d->'about' IS NULL THEN NULL ELSE COALESCE((SELECT"
            "  jsonb_agg(g.d ORDER BY at) FROM jsonb_array_elements(t.d->'about'->'tags')"
            "  WITH ORDINALITY AS r(id, at) JOIN g ON g.d->'_id' = r.id), '[]') END"
            " FROM t LEFT JOIN p ON p.d->'_id' = t.d->'owner'"
            " WHERE (t.d->>'rank')::int >= %s ORDER BY (t.d->>'rank')::int, 1",
            [*everything, least],
        )
        decoded = ((row[0], *map(_decoded, row[1:])) for row in cursor)
        return list(decoded)


def _decoded(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value


@pytest.mark.parametrize("least", [0, 20, 45, 100])
def test_lookups_equal_joins_of_sql(todos: CollectionClient, least: int) -> None:
    documents = todos.query(
        {"rank": {"$gte": least}}, lookup=LOOKUP, sort=[["rank", 1]], limit=1000
    )
    shown = [(document["_id"], document["by"], document["tags"]) for document in documents]
    assert shown == by_sql(todos, least)


def test_pages_and_projections_work_as_for_documents(todos: CollectionClient) -> None:
    own = todos.query(sort=[["rank", -1]], offset=3, limit=5)
    shown = todos.query(sort=[["rank", -1]], offset=3, limit=5, lookup=LOOKUP)
    for document, alone in zip(shown, own, strict=True):
        assert {name: document[name] for name in alone} == alone
    (named,) = todos.query({"owner": "p3"}, lookup=LOOKUP, projection={"by.name": 1}, limit=1)
    assert named == {"_id": named["_id"], "by": {"name": "name 3"}}
    first = todos.ask({"lookup": LOOKUP, "limit": 200}).json()
    rest = todos.ask({"lookup": LOOKUP, "limit": 200, "cursor": first["next_cursor"]}).json()
    both = [item["document"] for item in first["items"] + rest["items"]]
    assert both == todos.query(lookup=LOOKUP, limit=300)


def test_a_lookup_replaces_a_field_of_the_same_name_in_place(todos: CollectionClient) -> None:
    lookup = [{"from": "people", "local": "owner", "as": "owner"}]
    (own,) = todos.query({"owner": "p1"}, limit=1)
    (shown,) = todos.query({"owner": "p1"}, limit=1, lookup=lookup)
    assert list(shown) == list(own)
    assert shown["owner"] == {"_id": "p1", "name": "name 1"}


def test_lookups_can_be_queried_by_url(todos: CollectionClient) -> None:
    parameters = urlencode({"lookup": json.dumps(LOOKUP), "limit": "5"})
    by_url = todos.caller.get(f"{todos.path}/documents?{parameters}").json()
    assert [item["document"] for item in by_url["items"]] == todos.query(lookup=LOOKUP, limit=5)


def test_references_are_found_through_arrays_of_documents(server: str) -> None:
    collection = make_collection(server)
    goods = make_collection(server, account=collection.account)
    goods.insert_many([{"_id": 1}, {"_id": 2.0}])
    collection.insert(
        {"_id": 1, "lines": [{"of": 2}, {"of": 9}, {"none": 1}, 5, {"of": [1, None, [1]]}]}
    )
    (shown,) = collection.query(lookup=[{"from": goods.name, "local": "lines.of", "as": "goods"}])
    assert shown["goods"] == [{"_id": 2.0}, {"_id": 1}]


def test_hidden_documents_are_absent_from_lookups(server: str) -> None:
    collection = make_collection(server, rules={"read": True})
    open_ = make_collection(server, account=collection.account, rules={"read": {"public": True}})
    closed = make_collection(server, account=collection.account)
    for other in (open_, closed):
        other.insert_many([{"_id": number, "public": number == 1} for number in range(3)])
    collection.insert({"_id": 1, "one": 2, "many": [0, 1, 2]})
    body = {
        "lookup": [
            {"from": open_.name, "local": "one", "as": "a"},
            {"from": open_.name, "local": "many", "as": "b"},
            {"from": closed.name, "local": "many", "as": "c"},
        ]
    }
    answer = collection.anonymous().post(f"{collection.path}/query", body)
    shown = answer.json()["items"][0]["document"]
    assert shown["a"] is None
    assert shown["b"] == [{"_id": 1, "public": True}]
    assert shown["c"] == []
    assert len(collection.ask(body).json()["items"][0]["document"]["c"]) == 3


def test_a_key_looks_up_only_collections_that_it_may_read(
    todos: CollectionClient, server: str
) -> None:
    key = make_key(todos.account.tenant, scopes=["documents:read"], collections=["todos", "people"])
    kept = with_key(server, key)
    path, body = f"{todos.path}/query", {"lookup": LOOKUP[:1], "limit": 1}
    assert kept.post(path, body).status_code == 200
    problem(kept.post(path, {"lookup": LOOKUP}), 403, "forbidden")


@pytest.mark.parametrize(
    ("lookup", "pointer"),
    [
        ({}, "/lookup"),
        ([], "/lookup"),
        ([{"from": "people", "local": "owner"}], "/lookup/0"),
        ([{**LOOKUP[0], "local": "$owner"}], "/lookup/0/local"),
        ([{**LOOKUP[0], "as": "_id"}], "/lookup/0/as"),
        ([LOOKUP[0], LOOKUP[0]], "/lookup/1/as"),
        ([{**LOOKUP[0], "let": 1}], "/lookup/0/let"),
    ],
)
def test_the_error_names_what_cannot_be_looked_up(
    todos: CollectionClient, lookup: object, pointer: str
) -> None:
    error = problem(todos.ask({"lookup": lookup}), 400, "invalid_lookup")
    assert error["errors"][0]["pointer"] == pointer


def test_a_collection_that_does_not_exist_is_not_found(todos: CollectionClient) -> None:
    problem(todos.ask({"lookup": [{**LOOKUP[0], "from": "nowhere"}]}), 404, "not_found")


def test_a_group_has_no_lookups(todos: CollectionClient) -> None:
    group = {"by": [], "measures": {"n": {"op": "count"}}}
    error = problem(todos.ask({"group": group, "lookup": LOOKUP}), 400, "invalid_lookup")
    assert error["errors"][0]["pointer"] == "/lookup"


def test_looked_up_documents_are_of_the_snapshot_of_the_query(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = make_collection(server)
    people = make_collection(server, account=orders.account)
    people.insert({"_id": "ada", "name": "before"})
    orders.insert({"_id": 1, "person": "ada"})

    async def read_after_a_write(*arguments: Any) -> Any:
        renamed = Operation.merge(Value.parse(b'"ada"'), Value.parse(b'{"name":"after"}'))
        await write(WriteCall(orders.account.tenant.id, people.name, Operations([renamed])))
        return await read_sides(*arguments)

    lookup = [{"from": people.name, "local": "person", "as": "people"}]
    with monkeypatch.context() as interrupted:
        interrupted.setattr(queries, "read_sides", read_after_a_write)
        (order,) = orders.query(lookup=lookup)
    assert order["people"] == {"_id": "ada", "name": "before"}
    (order,) = orders.query(lookup=lookup)
    assert order["people"] == {"_id": "ada", "name": "after"}
