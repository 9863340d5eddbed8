"""Aggregates through the Python SDK."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rillbase import Client, Result, RowQuery, ServerError
from tests.aggregates.aggregate_client import AggregateClient
from tests.aggregates.test_events import request
from tests.aggregates.test_live import key_of


@pytest.fixture
def db(server: str, requests_5m: AggregateClient) -> Iterator[Client]:
    with Client(server, key=key_of(requests_5m)) as db:
        yield db


BY_CUSTOMER = RowQuery(group_by=["customer"], measures=["count"], order=[("customer", 1)])


def test_events_are_added_and_rows_queried(db: Client, requests_5m: AggregateClient) -> None:
    rows = db.aggregate(requests_5m.name)
    answer = rows.add(request("acme"), request("bolt", event_id="e"))
    assert (answer.applied, answer.repeated) == (2, 0)
    assert rows.add(request("bolt", event_id="e")).repeated == 1
    documents = rows.query(BY_CUSTOMER, snapshot="fresh")
    assert documents.rows == [{"customer": "acme", "count": 1}, {"customer": "bolt", "count": 1}]
    assert documents.as_of is None
    recent = rows.query(RowQuery(group_by=[], since="-1h", compare="1h"), snapshot="fresh")
    assert recent.rows[0]["count"] == 2


def test_rows_are_watched(db: Client, requests_5m: AggregateClient) -> None:
    rows = db.aggregate(requests_5m.name)
    rows.add(request("acme"))
    for snapshot in rows.watch(BY_CUSTOMER):
        if snapshot.state == "live" and len(snapshot.documents) == 1:
            rows.add(request("bolt"))
        if len(snapshot.documents) == 2:
            break
    assert snapshot.documents == [
        {"customer": "acme", "count": 1},
        {"customer": "bolt", "count": 1},
    ]
    changes = rows.changes(BY_CUSTOMER)
    first = next(changes)
    assert isinstance(first, Result)
    assert len(first.documents) == 2
    rows.add(request("acme"))
    change = next(changes)
    assert not isinstance(change, Result)
    assert (change.type, change.item.document) == ("change", {"customer": "acme", "count": 2})


def test_an_error_is_raised_at_the_call(db: Client, requests_5m: AggregateClient) -> None:
    with pytest.raises(ServerError, match="nowhere"):
        db.aggregate("nowhere").query()
    with pytest.raises(ServerError):
        next(db.aggregate("nowhere").watch())
