"""The Python SDK predicts the results of writes exactly as the server computes them, or not at
all.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rillbase import ejson
from rillbase.local.matcher import matches
from rillbase.local.overlay import overlaid
from rillbase.local.pending import UnconfirmedWrite, WriteOperation
from rillbase.local.update import updated
from rillbase.order import rank
from rillbase.query import Spec
from rillbase.view import Item
from rillbase_native import Filter, Value
from tests.native.test_bounds import FILTERS, VALUES

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

DOCUMENTS = st.fixed_dictionaries({"_id": st.just(1)}, optional={"a": VALUES, "b": VALUES})
CHANCE = random.Random(7)
UPDATES = 400


def _is_comparable(value: object) -> bool:
    """Whether the server's sort keys tell all of a value: of long texts they hold the beginning."""
    text = json.dumps(value)
    return "$undefined" not in text and len(text) < 1_000


COMPARABLE = VALUES.filter(_is_comparable)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(document=DOCUMENTS, filter=FILTERS)
@example(document={"_id": 1, "a": [[1]]}, filter={"a.0": 1})
@example(document={"_id": 1, "a": [{"0": [1]}]}, filter={"a.0": 1})
def test_a_verdict_about_a_filter_is_the_servers(
    document: dict[str, Any],
    filter: dict[str, Any],  # noqa: A002
) -> None:
    try:
        parsed = Filter.parse(native(filter))
    except ValueError:
        return  # Refused as it is; nobody asks it.
    verdict = matches(ejson.decode(filter), ejson.decode(document))
    if verdict is not None:
        assert verdict == parsed.matches(native(document).bson(), 0)


@settings(max_examples=200, deadline=None)
@given(left=COMPARABLE, right=COMPARABLE)
def test_values_are_ordered_as_the_server_orders_them(left: object, right: object) -> None:
    a, b = native({"_": left}).get("_"), native({"_": right}).get("_")
    assert a is not None
    assert b is not None
    mine, other = rank(ejson.decode(left)), rank(ejson.decode(right))
    assert (mine < other) == (a.sort_key() < b.sort_key())


def test_an_update_is_foreseen_as_the_server_does_it(todos: CollectionClient) -> None:
    before = [{"_id": n, **some_members()} for n in range(UPDATES)]
    changes = [some_update() for _ in range(UPDATES)]
    todos.insert_many(before)
    operations = [{"update": {"id": n, "update": change}} for n, change in enumerate(changes)]
    body = {"operations": operations, "ordered": False}
    answer = todos.caller.post(f"{todos.path}/documents:bulk", body)
    results = answer.json()["results"]
    after = {document["_id"]: document for document in todos.query(limit=UPDATES)}
    foreseen = 0
    for document, change, result in zip(before, changes, results, strict=True):
        expected = updated(document, change)
        if expected is None or "error" in result:
            continue
        foreseen += 1
        assert after[document["_id"]] == expected, (document, change)
    # Most of what these operators do can be foreseen.
    assert foreseen > UPDATES / 3


def some_value() -> Any:
    return CHANCE.choice([None, True, 1, 2, 2.5, "x", [], [1, 2, "x"], [{"b": 1}], {"b": 1}, {}])


def some_members() -> dict[str, Any]:
    return {name: some_value() for name in "abc" if CHANCE.random() < 0.7}


def some_update() -> dict[str, Any]:
    name = CHANCE.choice(
        ["$set", "$unset", "$inc", "$mul", "$min", "$max", "$push", "$addToSet", "$pop", "$pull"]
    )
    path = CHANCE.choice(["a", "b", "c", "a.b", "b.b.c"])
    match name:
        case "$inc" | "$mul":
            operand = CHANCE.choice([1, -2, 0.5])
        case "$pop":
            operand = CHANCE.choice([1, -1])
        case _:
            operand = some_value()
    return {name: {path: operand}}


def native(value: object) -> Value:
    return Value.parse(json.dumps(value).encode())


CHANGES = {
    "insert": WriteOperation("insert", "things", "e", {"n": 1}),
    "update": WriteOperation("update", "things", "b", {"$set": {"n": 2}}),
}


@pytest.mark.parametrize(
    ("by", "direction", "changes", "expected"),
    [
        ("$updated", -1, ["update"], "bcad"),
        ("$updated", 1, ["update"], "cadb"),
        ("$updated", -1, ["insert", "update"], "beca"),
        ("$updated", -1, ["update", "insert"], "ebca"),
        ("$created", -1, ["update"], "cbad"),
        ("$created", 1, ["insert", "update"], "cbad"),
        ("$created", -1, ["insert"], "ecba"),
    ],
)
def test_pending_writes_are_the_latest_in_a_sort_by_time(
    by: str, direction: Literal[1, -1], changes: list[str], expected: str
) -> None:
    items = [Item(name, 1, {"n": 1}) for name in "cbad"]
    pending = [UnconfirmedWrite(CHANGES[name]) for name in changes]
    answer = overlaid(items, pending, Spec("things", sort=((by, direction),), limit=4))
    assert "".join(str(item.id) for item in answer) == expected
