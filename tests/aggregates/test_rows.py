"""What a subscriber to rows receives, however slow it is."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from aggregates.live.rows import SubscriptionRows
from foundation.json_types import JsonObject


def row(customer: str, count: int) -> JsonObject:
    return {"customer": customer, "count": count, "previous": {"count": count - 1}}


def changes(rows: SubscriptionRows) -> list[tuple[str, str]]:
    return [(row.match, json.loads(row.key)["customer"]) for row in rows.take()]


def with_groups(*customers: str) -> SubscriptionRows:
    rows = SubscriptionRows(frozenset({"count"}))
    rows.replace([row(customer, 1) for customer in customers])
    rows.all()
    return rows


def test_rows_are_identified_by_their_grouping() -> None:
    rows = SubscriptionRows(frozenset({"count"}))
    assert json.loads(rows.key(row("acme", 3))) == {"customer": "acme"}


def test_only_the_last_of_many_changes_is_delivered() -> None:
    rows = with_groups("acme")
    for count in range(2, 50):
        rows.change([row("acme", count)], [])
    rows.change([row("bolt", 1)], [])
    assert changes(rows) == [("change", "acme"), ("add", "bolt")]
    assert changes(rows) == []


def test_changes_that_cancel_out_are_not_delivered() -> None:
    rows = with_groups("acme")
    rows.change([row("bolt", 1)], [])
    rows.change([row("acme", 2)], [{"customer": "bolt"}])
    rows.change([row("acme", 1)], [])
    assert changes(rows) == []


def test_a_new_answer_is_delivered_as_the_difference() -> None:
    rows = with_groups("acme", "bolt")
    rows.replace([row("bolt", 7), row("cumulus", 1)])
    assert sorted(changes(rows)) == [("add", "cumulus"), ("change", "bolt"), ("remove", "acme")]


steps = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3) | st.none(), st.booleans()), max_size=40
)


@given(steps)
def test_a_client_that_applies_all_changes_has_the_current_answer(
    history: list[tuple[str, int | None, bool]],
) -> None:
    rows, there, held = with_groups(), dict[str, int](), dict[str, int]()
    for customer, count, has_room in history:
        if count is None:
            there.pop(customer, None)
            rows.change([], [{"customer": customer}])
        else:
            there[customer] = count
            rows.change([row(customer, count)], [])
        if has_room:
            for item in rows.take():
                name = json.loads(item.key)["customer"]
                assert (name in held) is (item.match != "add")
                if item.row is None:
                    del held[name]
                else:
                    held[name] = json.loads(item.row)["count"]
            assert held == there
