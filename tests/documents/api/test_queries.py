"""Queries by filter: their results, order and pages."""

from __future__ import annotations

import json
import random
from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest

from documents.backend import Backend
from tests.caller import problem
from tests.documents.collection import CollectionClient, make_collection
from tests.waiting import wait_until

INDEXES = [
    ("rank", [("rank", 1)], False),
    ("group", [("group", 1), ("rank", -1)], False),
    ("tags", [("tags", 1)], False),
]


@pytest.fixture(scope="module")
def things(server: str, backend: Backend) -> CollectionClient:
    """A collection of 400 documents, with indexes."""
    collection = make_collection(server, indexes=INDEXES)
    rng = random.Random(5)
    documents: list[dict[str, Any]] = []
    for number in range(400):
        document: dict[str, Any] = {"_id": number, "group": rng.randrange(5)}
        if number % 7:
            document["rank"] = rng.choice([rng.randrange(50), 2.5, None, "text"])
        if number % 3 == 0:
            document["tags"] = rng.sample(["a", "b", "c", "d"], rng.randrange(4))
        if number % 31 == 0:
            document["rank"] = [rng.randrange(50), rng.randrange(50)]
        documents.append(document)
    collection.insert_many(documents)
    return collection


@pytest.fixture(scope="module")
def unindexed(server: str, backend: Backend, things: CollectionClient) -> CollectionClient:
    """The same documents in a collection without indexes."""
    collection = make_collection(server, account=things.account)
    collection.insert_many(things.query(limit=1000))
    return collection


FILTERS: list[Any] = [
    {},
    {"group": 3},
    {"rank": {"$gte": 10, "$lt": 20}},
    {"rank": None},
    {"rank": {"$exists": False}},
    {"tags": "a"},
    {"tags": {"$all": ["a", "b"]}},
    {"tags": {"$in": ["c", None]}},
    {"tags": {"$size": 2}},
    {"tags": []},
    {"group": {"$in": [1, 2]}, "rank": {"$gt": 5}},
    {"$or": [{"rank": 3}, {"rank": {"$gt": 45}}]},
    {"$nor": [{"group": 1}, {"tags": "d"}]},
    {"rank": {"$regex": "^te"}},
    {"_id": {"$gte": 100, "$lt": 120}},
    {"_id": {"$in": [1, 5, 399, 1000]}},
    {"rank": {"$gt": 40}, "$expr": {"$lt": ["$group", 2]}},
]
SORTS: list[Any] = [
    None,
    [["_id", -1]],
    [["rank", 1]],
    [["rank", -1]],
    [["group", 1], ["rank", -1]],
    [["group", -1], ["rank", 1]],
    {"tags": 1},
    [["missing", 1]],
]


def pages(collection: CollectionClient, body: dict[str, object]) -> list[Any]:
    """Follow cursors to the end."""
    documents, cursor = [], None
    while True:
        answer = collection.ask({**body, "cursor": cursor})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        documents += [item["document"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return documents


@pytest.mark.parametrize("condition", FILTERS, ids=json.dumps)
def test_indexes_never_change_the_answer(
    things: CollectionClient, unindexed: CollectionClient, condition: Any
) -> None:
    for sort in SORTS:
        body = {"filter": condition, "limit": 1000}
        if sort is not None:
            body["sort"] = sort
        with_index, without = things.ask(body).json(), unindexed.ask(body).json()
        ours = [item["document"] for item in with_index["items"]]
        assert ours == [item["document"] for item in without["items"]], (condition, sort)
        assert pages(things, {**body, "limit": 37}) == ours, (condition, sort)


@pytest.mark.parametrize("way", [1, -1])
def test_a_document_matched_by_one_value_is_sorted_by_another(server: str, way: int) -> None:
    collection = make_collection(server, indexes=[("a", [("a", way)], False)])
    collection.insert_many([{"_id": number, "a": 100 + number} for number in range(100)])
    collection.insert_many([{"_id": "first", "a": [0, 150]}, {"_id": "last", "a": [150, 900]}])
    for direction, sort in ((1, ["first", 0, 1]), (-1, ["last", 99, 98])):
        body = {"filter": {"a": {"$gte": 100, "$lt": 300}}, "sort": {"a": direction}, "limit": 3}
        items = [item["document"]["_id"] for item in collection.ask(body).json()["items"]]
        assert items == sort
        assert len(pages(collection, body)) == 102


TIME_SORTS: list[Any] = [
    [["$updated", -1]],
    [["$updated", 1]],
    [["$created", -1]],
    {"$created": 1},
    [["group", 1], ["$updated", -1]],
    [["$created", 1], ["rank", -1]],
    [["$updated", -1], ["_id", -1]],
]


@pytest.fixture(scope="module")
def aged(server: str, backend: Backend) -> CollectionClient:
    """Documents that were created in four batches, some of which were changed later."""
    collection = make_collection(server, indexes=INDEXES)
    for batch in range(4):
        numbers = [batch * 10 + number for number in reversed(range(10))]
        collection.insert_many(
            [{"_id": f"d{n:02}", "group": n % 3, "rank": n % 2} for n in numbers]
        )
    for number in (5, 31, 17, 31):
        path = f"{collection.path}/documents/d{number:02}"
        assert collection.caller.patch(path, {"$set": {"rank": 7}}).status_code == 200
    return collection


def _items(collection: CollectionClient, **body: object) -> list[Any]:
    items: list[Any] = collection.ask(body).json()["items"]
    return items


def _sort_value(item: Any, name: str) -> Any:
    times = {"$created": item["created_at"], "$updated": item["updated_at"]}
    return times[name] if name in times else item["document"][name]


def _sorted_by_times(items: list[Any], sort: Any) -> list[str]:
    """Return the ids in the order of a sort, from the times that a query returns."""
    pairs = list(sort.items()) if isinstance(sort, dict) else sort
    ordered = sorted(items, key=lambda item: item["id"])
    for name, direction in reversed(pairs):
        ordered.sort(key=partial(_sort_value, name=name), reverse=direction == -1)
    return [item["id"] for item in ordered]


@pytest.mark.parametrize("sort", TIME_SORTS, ids=json.dumps)
def test_documents_are_sorted_by_their_times_page_by_page(
    aged: CollectionClient, sort: Any
) -> None:
    items = _items(aged, limit=100)
    assert len({item["created_at"] for item in items}) < len(items), "no ties"
    expected = _sorted_by_times(items, sort)
    assert aged.ids(sort=sort, limit=100) == expected
    assert [document["_id"] for document in pages(aged, {"sort": sort, "limit": 7})] == expected
    assert aged.ids(sort=sort, offset=3, limit=5) == expected[3:8]


def test_a_filter_with_an_index_narrows_a_sort_by_time(aged: CollectionClient) -> None:
    items = _items(aged, filter={"group": 2}, limit=100)
    expected = _sorted_by_times(items, [["$updated", -1]])
    assert aged.ids({"group": 2}, sort=[["$updated", -1]], limit=4) == expected[:4]


def test_a_change_makes_a_document_the_last_changed_one(server: str) -> None:
    collection = make_collection(server)
    collection.insert_many([{"_id": name} for name in "abc"])
    (newest,) = _items(collection, sort=[["$updated", -1]], limit=1)
    path = f"{collection.path}/documents/c"

    def changes_later() -> bool:
        changed = collection.caller.patch(path, {"$inc": {"n": 1}}).json()
        return bool(changed["updated_at"] > newest["updated_at"])

    wait_until(changes_later, what="a later millisecond")
    assert collection.ids(sort=[["$updated", -1]]) == ["c", "a", "b"]
    assert collection.ids(sort=[["$created", -1]]) == ["a", "b", "c"]


def test_a_cursor_of_a_sort_by_time_belongs_to_that_sort(aged: CollectionClient) -> None:
    cursor = aged.ask({"sort": [["$updated", -1]], "limit": 2}).json()["next_cursor"]
    other = {"sort": [["$updated", 1]], "limit": 2, "cursor": cursor}
    problem(aged.ask(other), 400, "invalid_cursor")


def test_without_a_sort_documents_are_ordered_by_id(things: CollectionClient) -> None:
    assert things.ids(limit=5) == [0, 1, 2, 3, 4]


def test_windows_are_applied_after_sorting(things: CollectionClient) -> None:
    every = things.ids(sort=[["rank", -1]], limit=1000)
    assert things.ids(sort=[["rank", -1]], offset=10, limit=5) == every[10:15]


def test_a_projection_selects_fields(things: CollectionClient) -> None:
    (shown,) = things.query({"_id": 1}, projection={"group": 1})
    assert set(shown) == {"_id", "group"}
    (hidden,) = things.query({"_id": 1}, projection={"group": 0})
    assert "group" not in hidden


def test_a_query_by_url_equals_a_query_by_body(things: CollectionClient) -> None:
    body = {"filter": {"group": 2}, "sort": [["rank", 1]], "limit": 7}
    address = urlencode({name: json.dumps(value) for name, value in body.items()})
    by_url = things.caller.get(f"{things.path}/documents?{address}")
    assert by_url.json()["items"] == things.ask(body).json()["items"]


def test_a_cursor_belongs_to_its_query(things: CollectionClient) -> None:
    cursor = things.ask({"filter": {"group": 1}, "limit": 2}).json()["next_cursor"]
    problem(things.ask({"filter": {"group": 2}, "cursor": cursor}), 400, "invalid_cursor")
    problem(things.ask({"filter": {"group": 1}, "cursor": cursor[:-2]}), 400, "invalid_cursor")
    problem(things.ask({"cursor": "nonsense"}), 400, "invalid_cursor")


@pytest.mark.parametrize("condition", FILTERS[:12], ids=json.dumps)
def test_counts_agree_with_query_results(things: CollectionClient, condition: Any) -> None:
    counted = things.caller.post(f"{things.path}/count", {"filter": condition})
    assert counted.json() == {"count": len(things.ids(condition, limit=1000))}


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"filter": {"a": {"$nonsense": 1}}}, "unsupported_operator", "/filter/a/$nonsense"),
        ({"filter": {"$where": "1"}}, "unsupported_operator", "/filter/$where"),
        ({"filter": {"a": {"$regex": "(?=x)"}}}, "invalid_regex", "/filter/a/$regex"),
        ({"filter": []}, "invalid_filter", "/filter"),
        ({"sort": [["a", 2]]}, "invalid_sort", "/sort/0"),
        ({"sort": [["a", 1], ["$changed", 1]]}, "invalid_sort", "/sort/1"),
        ({"sort": [["$updated", 2]]}, "invalid_sort", "/sort/0"),
        ({"sort": [["$updated", 1], ["$updated", -1]]}, "invalid_sort", "/sort/1"),
        ({"projection": {"a": 1, "b": 0}}, "invalid_projection", "/projection"),
        ({"limit": 0}, "invalid_body", "/limit"),
        ({"limit": 10_001}, "invalid_body", "/limit"),
        ({"offset": -1}, "invalid_body", "/offset"),
        ({"nonsense": 1}, "invalid_body", "/nonsense"),
    ],
)
def test_the_error_points_to_a_mistake_in_a_query(
    things: CollectionClient, body: object, code: str, pointer: str
) -> None:
    error = problem(things.ask(body), 400, code)
    assert error["errors"][0]["pointer"].startswith(pointer), error


def conditions(plan: Any) -> str:
    return json.dumps(plan["postgres"])


def test_explain_shows_the_index(things: CollectionClient, backend: Backend) -> None:
    condition = {"filter": {"rank": {"$gte": 48}}, "limit": 5}
    plan = things.caller.post(f"{things.path}/explain", condition).json()
    assert plan["plan"]["index"] == "rank"
    if backend == Backend.POSTGRES:
        assert "Index Cond" in conditions(plan)
        assert "index_number" in conditions(plan)
    assert plan["grid"] == {"indexable": True, "access": [{"path": "rank", "kind": "range"}]}


@pytest.mark.backend("postgres", reason="it reads PostgreSQL's plan")
def test_a_range_of_an_index_begins_at_its_lower_bound(things: CollectionClient) -> None:
    """With a second lower bound, PostgreSQL 18 may read the index from its beginning."""
    condition = {"filter": {"rank": {"$gte": 20, "$lt": 30}}, "limit": 5}
    plan = things.caller.post(f"{things.path}/explain", condition).json()
    assert conditions(plan).count("ROW(key, document_key) >") == 1
    assert "(key >" not in conditions(plan)


def test_explain_shows_ranges_of_ids(things: CollectionClient, backend: Backend) -> None:
    plan = things.caller.post(f"{things.path}/explain", {"filter": {"_id": 7}}).json()
    assert (plan["plan"]["reads"], plan["plan"]["reads_everything"]) == ("documents", False)
    assert plan["plan"]["ranges"] == 1
    assert backend == Backend.NATIVE or "Index Cond" in conditions(plan)


def test_explain_reports_a_full_scan(things: CollectionClient) -> None:
    plan = things.caller.post(f"{things.path}/explain", {"filter": {"x": {"$mod": [2, 0]}}}).json()
    assert plan["plan"]["reads_everything"] is True
    assert plan["grid"] == {"indexable": False, "access": []}


def test_text_and_distance_queries_have_their_own_order(server: str) -> None:
    places = make_collection(server)
    places.insert_many(
        [
            {"_id": "far", "at": [10, 10], "about": "a harbour"},
            {"_id": "near", "at": [0.1, 0.1], "about": "harbour and harbour"},
            {"_id": "mid", "at": [1, 1], "about": "a hill"},
        ]
    )
    near = {"at": {"$near": [0, 0]}}
    assert places.ids(near) == ["near", "mid", "far"]
    text = {"$text": {"$search": "harbour"}}
    by_score = places.ids(text, sort={"score": {"$meta": "textScore"}})
    assert set(by_score) == {"far", "near"}


def test_a_filter_may_depend_on_the_time(server: str) -> None:
    events = make_collection(server)
    dates = {"past": "2001-01-01T00:00:00Z", "future": "2999-01-01T00:00:00Z"}
    events.insert_many([{"_id": name, "at": {"$date": date}} for name, date in dates.items()])
    assert events.ids({"$expr": {"$lt": ["$at", "$$NOW"]}}) == ["past"]
    assert events.ids({"$expr": {"$gt": ["$at", "$$NOW"]}}) == ["future"]
