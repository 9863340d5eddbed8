"""Queries of aggregates' rows at one snapshot."""

from __future__ import annotations

import datetime

import pytest

from tests.aggregates.aggregate_client import AggregateClient, Json, make_aggregate
from tests.aggregates.test_events import request
from tests.caller import problem
from tests.waiting import wait_until

FIVE = datetime.timedelta(minutes=5)


def buckets_ago(count: int) -> datetime.datetime:
    """Return the start of a past bucket."""
    now = datetime.datetime.now(datetime.UTC).replace(second=0, microsecond=0)
    return now - datetime.timedelta(minutes=now.minute % 5) - count * FIVE


def at(count: int) -> str:
    return buckets_ago(count).isoformat()


def fill(aggregate: AggregateClient) -> AggregateClient:
    aggregate.add(
        request("acme", 10, at=at(3)),
        request("acme", 30, at=at(2)),
        request("acme", 50, at=at(2), endpoint="/pay"),
        request("bolt", 100, at=at(2)),
    )
    return aggregate


@pytest.fixture
def filled(requests_5m: AggregateClient) -> AggregateClient:
    """An aggregate that a test may change."""
    return fill(requests_5m)


@pytest.fixture(scope="module")
def lasting(server: str) -> AggregateClient:
    """An aggregate for the tests that only query."""
    return fill(make_aggregate(server))


def test_rows_are_grouped_filtered_and_ordered(lasting: AggregateClient) -> None:
    rows = lasting.rows(group_by=["customer"], order=[["total", -1]])
    assert [(row["customer"], row["count"], row["total"]) for row in rows] == [
        ("bolt", 1, 100),
        ("acme", 3, 90),
    ]
    rows = lasting.rows(group_by=["endpoint"], filter={"customer": "acme"}, order=[["endpoint", 1]])
    assert [(row["endpoint"], row["latency"]) for row in rows] == [("/cart", 20), ("/pay", 50)]
    rows = lasting.rows(group_by=["customer"], order=[["customer", 1]], limit=1)
    assert [row["customer"] for row in rows] == ["acme"]
    (row,) = lasting.rows(group_by=[], measures=["peak"])
    assert row == {"peak": 100}


def test_a_query_is_about_a_span_of_time(lasting: AggregateClient) -> None:
    (row,) = lasting.rows(group_by=[], **{"from": at(2), "to": at(1)})
    assert row["count"] == 3
    (row,) = lasting.rows(group_by=[], **{"from": "-1h", "to": at(2)})
    assert row["count"] == 1
    rows = lasting.rows(group_by=["at"], bucket="1h")
    assert sum(row["count"] for row in rows) == 4
    assert len(rows) <= 2


def test_each_row_is_compared_with_that_of_the_previous_bucket(lasting: AggregateClient) -> None:
    """The example of the paper: an alert where the average doubles."""
    rows = lasting.rows(
        group_by=["customer", "endpoint", "at"],
        filter={"customer": "acme", "endpoint": "/cart"},
        compare="previous",
        order=[["at", 1]],
    )
    first, second = rows
    assert first["previous"] is None
    assert (second["latency"], second["previous"]["latency"]) == (30, 10)


def test_a_snapshot_gives_the_same_rows_again(filled: AggregateClient) -> None:
    before = filled.query(group_by=["customer"])
    filled.add(request("acme", 10))
    again = filled.query(group_by=["customer"], snapshot=before["snapshot"])
    assert again["rows"] == before["rows"]
    assert filled.query(group_by=["customer"])["rows"] != before["rows"]


def test_an_unknown_snapshot_is_reported_as_expired(lasting: AggregateClient) -> None:
    refusal = lasting.caller.post(f"{lasting.path}/query", {"snapshot": "1"})
    problem(refusal, 410, "snapshot_expired")


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"group_by": ["server"]}, "/group_by/0"),
        ({"measures": ["median"]}, "/measures/0"),
        ({"filter": {"server": "a"}}, "/filter/server"),
        ({"filter": {"customer": {"$where": "x"}}}, "/filter"),
        ({"from": "yesterday"}, "/from"),
        ({"limit": 0}, "/limit"),
        ({"order": [["median", 1]]}, "/order/0"),
        ({"bucket": "7m"}, "/bucket"),
        ({"compare": "next"}, "/compare"),
        ({"rollup": ["endpoint"]}, "/rollup"),
        ({"surprise": 1}, "/surprise"),
    ],
)
def test_invalid_queries_are_rejected_with_the_reason(
    lasting: AggregateClient, asked: Json, pointer: str
) -> None:
    details = problem(lasting.caller.post(f"{lasting.path}/query", asked), 400, "invalid_body")
    assert details["errors"][0]["pointer"].startswith(pointer), details


def test_every_kind_of_measure_is_answered(server: str) -> None:
    aggregate = make_aggregate(
        server,
        dimensions=[],
        rollups=[],
        time=None,
        measures={
            "money": {"op": "sum", "field": "price", "type": "decimal", "scale": 2},
            "whole": {"op": "sum", "field": "n", "type": "int"},
            "mean": {"op": "avg", "field": "n"},
            "least": {"op": "min", "field": "n"},
            "most": {"op": "max", "field": "n"},
            "people": {"op": "distinct", "field": "who"},
            "spread": {"op": "quantiles", "field": "n", "quantiles": [0.5, 1]},
            "best": {"op": "top", "field": "who", "k": 2},
        },
    )
    aggregate.add(
        *({"price": {"$numberDecimal": f"{n}.10"}, "n": n, "who": f"w{n % 3}"} for n in range(1, 8))
    )
    (row,) = aggregate.rows()
    assert (row["money"], row["whole"], row["mean"]) == ("28.70", 28, 4)
    assert (row["least"], row["most"], row["people"]) == (1, 7, 3)
    assert row["spread"]["0.5"] == pytest.approx(4, rel=0.05)
    assert row["best"][0] == {"value": "w1", "count": 3}


def test_a_changed_definition_rebuilds_the_rows(filled: AggregateClient) -> None:
    from aggregates.definitions import node_sync
    from aggregates.models import Aggregate
    from foundation.scope import scoped

    changed = filled.caller.patch(
        filled.control_path,
        {
            "rollups": [["endpoint"]],
            "measures": {"least": {"op": "min", "field": "latency_ms"}},
        },
    )
    assert changed.status_code == 200, changed.text
    assert changed.json()["state"] == "building"
    with scoped(tenant_id=filled.account.tenant.id):
        aggregate = str(Aggregate.objects.get(name=filled.name).pk)

    def built() -> bool:
        node_sync.sync(tenant=str(filled.account.tenant.id), aggregate=aggregate)
        return bool(filled.caller.get(filled.control_path).json()["state"] == "active")

    wait_until(built, what="the new rows")
    rows = filled.rows(group_by=["endpoint"], order=[["endpoint", 1]])
    assert rows == [{"endpoint": "/cart", "least": 10}, {"endpoint": "/pay", "least": 50}]


def test_a_dropped_aggregate_is_not_found(filled: AggregateClient) -> None:
    assert filled.caller.delete(filled.control_path).status_code == 204

    def is_gone() -> bool:
        answer = filled.caller.post(f"{filled.path}/query", {})
        return answer.status_code == 404

    wait_until(is_gone, what="the end to be believed")
    aggregate = make_aggregate(filled.caller.base, account=filled.account)
    wait_until(
        lambda: aggregate.caller.post(f"{aggregate.path}/query", {}).status_code == 200,
        what="the new one to be known",
    )
    assert aggregate.rows() == []
