"""Queries: the five phases, the state that they read, and what is rejected."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.analytics.dataset_client import ARROW, make_dataset
from tests.caller import problem

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient, Json

ORDERS: list[Json] = [
    {"id": 1, "customer": "ada", "amount": 2.0, "count": 1, "paid": True, "day": "2026-11-01"},
    {"id": 2, "customer": "ada", "amount": 4.0, "count": 2, "paid": False, "day": "2026-11-02"},
    {"id": 3, "customer": "bob", "amount": None, "count": 3, "at": "2026-11-21T10:00:00Z"},
    {"id": 4, "customer": None, "amount": 8.0, "count": 4, "at": "2026-11-21T11:00:00Z"},
]


@pytest.fixture(scope="module")
def orders(server: str) -> DatasetClient:
    dataset = make_dataset(server)
    dataset.insert("orders", *ORDERS)
    return dataset


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({}, [1, 2, 3, 4]),
        ({"id": 2}, [2]),
        ({"customer": "ada"}, [1, 2]),
        ({"customer": None}, [4]),
        ({"customer": {"$ne": "ada"}}, [3, 4]),
        ({"customer": {"$nin": ["ada", None]}}, [3]),
        ({"customer": {"$in": ["bob", None]}}, [3, 4]),
        ({"customer": {"$exists": False}}, [4]),
        ({"amount": {"$gt": 2, "$lt": 8}}, [2]),
        ({"amount": {"$gte": 2, "$lte": 8}}, [1, 2, 4]),
        ({"count": {"$gt": 2.5}}, [3, 4]),
        ({"count": {"$in": [1, 3_000_000_000]}}, [1]),
        ({"count": 2.5}, []),
        ({"paid": False}, [2]),
        ({"day": {"$gte": "2026-11-02"}}, [2]),
        ({"at": {"$lt": "2026-11-21T11:30:00+01:00"}}, [3]),
        ({"at": {"$date": "2026-11-21T11:00:00Z"}}, [4]),
        ({"id": {"$numberLong": "3"}}, [3]),
        ({"$or": [{"id": 1}, {"customer": "bob"}]}, [1, 3]),
        ({"$and": [{"id": {"$gt": 1}}, {"id": {"$lt": 4}}]}, [2, 3]),
        ({"$nor": [{"customer": "ada"}, {"amount": {"$gt": 5}}]}, [3]),
        ({"$nor": [{"$nor": [{"amount": {"$gt": 3}}]}]}, [2, 4]),
    ],
)
def test_a_filter_chooses_rows(orders: DatasetClient, where: Json, ids: list[int]) -> None:
    assert [row["id"] for row in orders.rows("orders", columns=["id"], filter=where)] == ids


@pytest.mark.parametrize(
    ("where", "code", "pointer"),
    [
        ({"colour": "red"}, "invalid_filter", "/filter/colour"),
        ({"id": "1"}, "invalid_filter", "/filter/id"),
        ({"id": True}, "invalid_filter", "/filter/id"),
        ({"id": {"$gt": None}}, "invalid_filter", "/filter/id/$gt"),
        ({"id": {"$in": 3}}, "invalid_filter", "/filter/id/$in"),
        ({"id": {"$in": [1, "a"]}}, "invalid_filter", "/filter/id/$in/1"),
        ({"id": 2**64}, "invalid_filter", "/filter/id"),
        ({"at": "yesterday"}, "invalid_filter", "/filter/at"),
        ({"at": "2026-11-21T10:00:00"}, "invalid_filter", "/filter/at"),
        ({"$or": []}, "invalid_filter", "/filter/$or"),
        ({"customer": {"$regex": "a"}}, "unsupported_operator", "/filter/customer/$regex"),
        ({"$where": "1"}, "unsupported_operator", "/filter/$where"),
    ],
)
def test_a_filter_that_cannot_be_is_named(
    orders: DatasetClient, where: Json, code: str, pointer: str
) -> None:
    answer = orders.caller.post(f"{orders.path}/query", {"table": "orders", "filter": where})
    details = problem(answer, 400, code)
    assert [error["pointer"] for error in details["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({}, "invalid_body", "/table"),
        ({"table": "shops"}, "invalid_body", "/table"),
        ({"table": "orders", "columns": ["no"]}, "invalid_body", "/columns/0"),
        ({"table": "orders", "columns": []}, "invalid_body", "/columns"),
        ({"table": "orders", "limit": 10_001}, "invalid_body", "/limit"),
        ({"table": "orders", "order": [["no", 1]]}, "invalid_sort", "/order/0"),
        ({"table": "orders", "order": [["id", 2]]}, "invalid_sort", "/order/0"),
        ({"table": "orders", "having": {"id": 1}}, "invalid_body", "/having"),
        ({"table": "orders", "group_by": ["no"]}, "invalid_body", "/group_by/0"),
        ({"table": "orders", "group_by": [], "columns": ["id"]}, "invalid_body", "/columns"),
        (
            {"table": "orders", "aggregates": {"a": {"op": "median", "column": "id"}}},
            "invalid_body",
            "/aggregates/a/op",
        ),
        (
            {"table": "orders", "aggregates": {"a": {"op": "sum", "column": "customer"}}},
            "invalid_body",
            "/aggregates/a/column",
        ),
        (
            {"table": "orders", "group_by": ["id"], "aggregates": {"id": {"op": "count"}}},
            "invalid_body",
            "/aggregates/id",
        ),
        ({"table": "orders", "freshness": "old"}, "invalid_body", "/freshness"),
        ({"table": "orders", "freshness": -1}, "invalid_body", "/freshness"),
        ({"table": "orders", "state": 99}, "invalid_body", "/state"),
        ({"table": "orders", "state": 1, "freshness": 1}, "invalid_body", "/state"),
        ({"table": "orders", "as_of": "now"}, "invalid_body", "/as_of"),
        ({"table": "orders", "surprise": 1}, "invalid_body", "/surprise"),
    ],
)
def test_a_query_that_cannot_be_is_named(
    orders: DatasetClient, body: Json, code: str, pointer: str
) -> None:
    details = problem(orders.caller.post(f"{orders.path}/query", body), 400, code)
    assert [error["pointer"] for error in details["errors"]] == [pointer]


def test_rows_are_ordered_and_counted_off(orders: DatasetClient) -> None:
    rows = orders.rows("orders", columns=["id"], order=[["customer", 1], ["id", -1]], limit=3)
    assert [row["id"] for row in rows] == [2, 1, 3]
    rows = orders.rows("orders", columns=["id"], order={"amount": -1}, limit=2)
    assert [row["id"] for row in rows] == [4, 2]


def test_groups_have_aggregates_and_are_filtered_again(orders: DatasetClient) -> None:
    request: dict[str, Any] = {
        "group_by": ["customer"],
        "aggregates": {
            "orders": {"op": "count"},
            "priced": {"op": "count", "column": "amount"},
            "total": {"op": "sum", "column": "amount"},
            "mean": {"op": "avg", "column": "count"},
            "first": {"op": "min", "column": "day"},
            "last": {"op": "max", "column": "at"},
            "days": {"op": "distinct", "column": "day"},
        },
        "order": [["orders", -1]],
    }
    ada, bob, nobody = orders.rows("orders", **request)
    assert ada == {
        "customer": "ada",
        "orders": 2,
        "priced": 2,
        "total": 6.0,
        "mean": 1.5,
        "first": "2026-11-01",
        "last": None,
        "days": 2,
    }
    assert (bob["priced"], bob["total"], bob["last"]) == (0, None, "2026-11-21T10:00:00.000000Z")
    assert (nobody["customer"], nobody["orders"]) == (None, 1)
    assert orders.rows("orders", having={"orders": {"$gte": 2}}, **request) == [ada]
    everything = orders.rows("orders", group_by=[], aggregates={"n": {"op": "count"}})
    assert everything == [{"n": 4}]
    nothing = orders.rows("orders", filter={"id": 99}, aggregates={"n": {"op": "count"}})
    assert nothing == [{"n": 0}]


def test_a_sum_that_does_not_fit_is_refused(server: str) -> None:
    dataset = make_dataset(server)
    dataset.insert("stock", *({"place": "a", "item": n, "pieces": 2**62} for n in range(3)))
    total: Json = {"total": {"op": "sum", "column": "pieces"}}
    answer = dataset.caller.post(f"{dataset.path}/query", {"table": "stock", "aggregates": total})
    problem(answer, 400, "sum_overflow")


def test_numbers_that_json_lacks_are_extended_json(server: str) -> None:
    dataset = make_dataset(server)
    rows = pa.table({"id": [2**60], "amount": [float("inf")]})
    from tests.analytics.dataset_client import as_arrow

    dataset.send("uploads", as_arrow(rows), ARROW, table="orders")
    assert dataset.rows("orders", columns=["id", "amount"]) == [
        {"id": {"$numberLong": str(2**60)}, "amount": {"$numberDouble": "Infinity"}}
    ]


def test_rows_can_be_read_as_an_arrow_stream(orders: DatasetClient) -> None:
    answer = orders.caller.call(
        "POST", f"{orders.path}/query", {"table": "orders", "columns": ["id", "at"]}, Accept=ARROW
    )
    assert answer.headers["Content-Type"] == ARROW
    with pa.ipc.open_stream(answer.content) as reader:
        result = reader.read_all()
    assert result["id"].to_pylist() == [1, 2, 3, 4]
    assert result.schema.field("at").type == pa.timestamp("us", "UTC")
    assert result.schema.metadata[b"rillbase.state"] == b"1"


def test_a_state_is_answered_again_as_it_was(shop: DatasetClient) -> None:
    for number in range(1, 4):
        shop.upload({"orders": {"id": number, "count": number}})
    shop.upload({"orders": {"id": 1}, "op": "delete"})
    for state, ids in ((0, []), (1, [1]), (3, [1, 2, 3]), (4, [2, 3])):
        answer = shop.query("orders", state=state, columns=["id"])
        assert ([row["id"] for row in answer["rows"]], answer["state"]) == (ids, state)


def test_a_query_can_request_a_time_or_a_minimum_state(shop: DatasetClient) -> None:
    first = shop.upload({"orders": {"id": 1}})
    second = shop.upload({"orders": {"id": 2}})
    assert shop.query("orders", as_of="2026-01-01T00:00:00Z")["state"] == 0
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=5)
    assert shop.query("orders", as_of=later.isoformat())["state"] == second["state"]
    assert shop.query("orders", freshness="any")["state"] == 0
    assert shop.query("orders", freshness=86_400)["state"] == 0
    assert shop.query("orders", freshness=86_400, since=first["state"])["state"] == 1
    assert shop.query("orders", freshness=0)["state"] == 2


def test_the_response_contains_what_was_read(orders: DatasetClient) -> None:
    answer = orders.query("orders", columns=["id"])
    assert answer["freshness_s"] == 0
    assert answer["read"]["unsorted"] == {"files": 1, "files_skipped": 0, "rows": 4}
    assert answer["read"]["authority"]["files"] == 0


def test_columns_that_were_added_later_are_null_before(shop: DatasetClient) -> None:
    shop.insert("stock", {"place": "a", "item": 1, "pieces": 1})
    tables = shop.caller.get(shop.control_path).json()["tables"]
    tables["stock"]["columns"]["colour"] = "string"
    assert shop.caller.patch(shop.control_path, {"tables": tables}).status_code == 200
    shop.insert("stock", {"place": "a", "item": 2, "colour": "red"})
    rows = shop.rows("stock", columns=["item", "colour"])
    assert rows == [{"item": 1, "colour": None}, {"item": 2, "colour": "red"}]


def test_a_query_is_refused_by_its_bytes_before_it_is_parsed(orders: DatasetClient) -> None:
    listed = [1] * 1_500_000
    answer = orders.caller.post(f"{orders.path}/query", {"filter": {"id": {"$in": listed}}})
    problem(answer, 413, "body_too_large")
