"""Grouped queries: their results, compared with SQL, and what they reject."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connections

from documents.backend import Backend
from tests.caller import problem
from tests.documents.collection import CollectionClient, make_collection

SHOPS, KINDS = ["north", "south", "west", None], ["a", "b", None]
MEASURES = {
    "count": {"op": "count"},
    "sum": {"op": "sum", "field": "price"},
    "mean": {"op": "avg", "field": "pieces"},
    "least": {"op": "min", "field": "pieces"},
    "most": {"op": "max", "field": "pieces"},
}
GROUP = {"by": ["shop", "item.kind"], "measures": MEASURES}


@pytest.fixture(scope="module")
def sales(server: str, backend: Backend) -> CollectionClient:
    """A collection of 600 sales; in half of them, null fields are missing."""
    collection = make_collection(server, indexes=[("pieces", [("pieces", 1)], False)])
    rng = random.Random(11)
    documents: list[dict[str, Any]] = []
    for number in range(600):
        document: dict[str, Any] = {"_id": number, "pieces": rng.randrange(20)}
        shop, kind = rng.choice(SHOPS), rng.choice(KINDS)
        if shop is not None or number % 2:
            document["shop"] = shop
        if kind is not None or number % 2:
            document["item"] = {"kind": kind}
        price = f"{rng.randrange(100_000)}E-{rng.randrange(4)}"
        document["price"] = {"$numberDecimal": price} if number % 5 else "sold out"
        documents.append(document)
    collection.insert_many(documents)
    return collection


def rows(collection: CollectionClient, **body: object) -> list[Any]:
    answer = collection.ask(body)
    assert answer.status_code == 200, answer.text
    result: list[Any] = answer.json()["rows"]
    return result


def by_sql(collection: CollectionClient, least: int) -> list[Any]:
    """Group the same documents in PostgreSQL; nulls come first there, too."""
    documents = collection.query({}, limit=1000)
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT * FROM ("
            "SELECT d->>'shop' AS shop, d->'item'->>'kind' AS kind, count(*),"
            " sum((d->'price'->>'$numberDecimal')::numeric),"
            " avg((d->>'pieces')::int), min((d->>'pieces')::int), max((d->>'pieces')::int)"
            " FROM jsonb_array_elements(%s::jsonb) d WHERE (d->>'pieces')::int >= %s"
            " GROUP BY d->>'shop', d->'item'->>'kind') AS g"
            ' ORDER BY shop COLLATE "C" NULLS FIRST, kind COLLATE "C" NULLS FIRST',
            [json.dumps(documents), least],
        )
        return [(*row[:3], row[3] or 0, pytest.approx(float(row[4])), *row[5:]) for row in cursor]


def as_tuple(row: dict[str, Any]) -> tuple[object, ...]:
    result = row["document"]
    total = result["sum"]
    total = Decimal(total["$numberDecimal"]) if isinstance(total, dict) else total
    names = ("mean", "least", "most")
    values = (result["shop"], result["item"]["kind"], result["count"], total)
    return (*values, *(result[name] for name in names))


@pytest.mark.parametrize("least", [0, 7, 18, 100])
def test_groups_equal_those_of_sql(sales: CollectionClient, least: int) -> None:
    result = rows(sales, filter={"pieces": {"$gte": least}}, group=GROUP)
    assert [as_tuple(row) for row in result] == by_sql(sales, least)


def test_a_row_is_an_envelope_without_a_version(sales: CollectionClient) -> None:
    (row,) = rows(
        sales,
        filter={"shop": "north", "item.kind": "a"},
        group={"by": ["item.kind", "shop"], "measures": {"sales": {"op": "count"}}},
    )
    assert row["id"] == {"item": {"kind": "a"}, "shop": "north"}
    assert row["version"] is None
    assert row["document"] == {**row["id"], "sales": row["document"]["sales"]}


def test_groups_are_sorted_and_limited_like_documents(sales: CollectionClient) -> None:
    all_of_them = [as_tuple(row) for row in rows(sales, group=GROUP)]
    in_order = sorted(all_of_them, key=lambda row: (-int(str(row[2])), all_of_them.index(row)))
    sort = [["count", -1], ["shop", 1], ["item.kind", 1]]
    result = rows(sales, group=GROUP, sort=sort, offset=2, limit=4)
    assert [as_tuple(row) for row in result] == in_order[2:6]


def test_groups_can_be_queried_by_url_and_explained(sales: CollectionClient) -> None:
    text = json.dumps(GROUP)
    by_url = sales.caller.get(f"{sales.path}/documents?{urlencode({'group': text})}")
    assert by_url.json()["rows"] == rows(sales, group=GROUP)
    explained = sales.caller.post(f"{sales.path}/explain", {"group": GROUP})
    assert explained.json()["plan"]["reads_everything"]


def test_hidden_documents_are_in_no_group(server: str) -> None:
    collection = make_collection(server, rules={"read": {"public": True}})
    collection.insert_many([{"public": number % 3 == 0, "n": number} for number in range(30)])
    group = {"by": ["public"], "measures": {"sum": {"op": "sum", "field": "n"}}}
    body = {"group": group}
    result = collection.anonymous().post(f"{collection.path}/query", body).json()["rows"]
    assert [row["document"] for row in result] == [{"public": True, "sum": 135}]
    assert len(rows(collection, group=group)) == 2


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"group": {"by": "shop"}}, "invalid_group", "/group/by"),
        ({"group": {"measures": {"a": {"op": "mode"}}}}, "invalid_group", "/group/measures/a/op"),
        ({"group": GROUP, "sort": [["price", 1]]}, "invalid_sort", "/sort/0"),
        ({"group": GROUP, "sort": [["count", 1], ["$updated", -1]]}, "invalid_sort", "/sort/1"),
        ({"group": GROUP, "projection": {"shop": 1}}, "invalid_group", "/projection"),
        ({"group": GROUP, "cursor": "abc"}, "invalid_group", "/cursor"),
    ],
)
def test_the_error_names_what_cannot_be_grouped(
    sales: CollectionClient, body: dict[str, object], code: str, pointer: str
) -> None:
    refusal = problem(sales.ask(body), 400, code)
    assert refusal["errors"][0]["pointer"] == pointer
