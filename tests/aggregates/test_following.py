"""Streams are followed without gaps; and the contribution of a document to a view."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from aggregates.following.shape import ViewProjection
from aggregates.following.streams import StreamGap, Track, order
from documents.outbox.entries import Image, StreamEntryKind, Tick, TransactionSnapshot
from rillbase_native import Value

ONE_LIFE, ANOTHER = b"1" * 16, b"2" * 16


def tick(count: int, *, life: bytes = ONE_LIFE, token: int = 1, position: int = 0) -> Tick:
    return Tick(token, life, TransactionSnapshot.up_to(position), 0, count)


def image() -> Image:
    return Image(StreamEntryKind.PUT, 1, uuid4(), uuid4(), 1, 1, 0, 0, b"k", b"")


def test_a_stream_without_a_hole_is_read_on() -> None:
    track = Track("0-0")
    contents: list[Image | Tick] = [image(), tick(7), image(), image(), tick(10)]
    for number, content in enumerate(contents):
        track.advance(f"{number}-0", content)
    assert (track.position, track.incarnation) == ("4-0", ONE_LIFE)


@pytest.mark.parametrize(
    "contents",
    [
        [tick(7), image(), tick(10)],
        [tick(7), tick(8, life=ANOTHER)],
        [tick(7), tick(3)],
    ],
    ids=["an entry too few", "another life", "a stream that began anew"],
)
def test_a_stream_with_a_hole_is_noticed(contents: list[Image | Tick]) -> None:
    track, last = Track("0-0"), contents.pop()
    for number, content in enumerate(contents):
        track.advance(f"{number}-0", content)
    with pytest.raises(StreamGap):
        track.advance("9-0", last)


def test_the_tick_of_a_relay_that_was_outrun_proves_nothing() -> None:
    track = Track("0-0")
    track.advance("1-0", tick(7, token=5))
    track.advance("2-0", tick(8, token=4, life=ANOTHER))
    track.advance("3-0", tick(9, token=5))
    assert track.position == "3-0"


def test_a_stream_has_all_changes_up_to_its_last_tick() -> None:
    track = Track("0-0")
    assert not track.has_all_up_to(0)
    track.advance("1-0", tick(7, position=20))
    track.advance("2-0", image())
    assert track.has_all_up_to(0)
    assert track.has_all_up_to(20)
    assert not track.has_all_up_to(21)
    track.advance("3-0", tick(9, position=21))
    assert track.has_all_up_to(21)


def test_the_tick_of_an_older_relay_does_not_count() -> None:
    track = Track("0-0")
    track.advance("1-0", tick(7, token=5, position=20))
    track.advance("2-0", tick(8, token=4, position=30))
    assert not track.has_all_up_to(21)


def test_places_are_compared_as_numbers() -> None:
    places = ["10-0", "9-2", "9-10", "9"]
    assert sorted(places, key=order) == ["9", "9-2", "9-10", "10-0"]


def shape(**definition: object) -> ViewProjection:
    full_definition = {
        "dimensions": ["kind"],
        "time": None,
        "measures": {},
        "rollups": [],
        **definition,
    }
    return ViewProjection.of(full_definition, '{"on":{"$ne":false}}')  # type: ignore[arg-type]


def bson(document: object) -> bytes:
    return Value.parse(json.dumps(document).encode()).bson()


def test_the_node_receives_the_fields_of_a_document_that_a_view_needs() -> None:
    full_definition = shape(
        dimensions=["customer.country"],
        time={"field": "at", "bucket": "1d"},
        measures={"sum": {"op": "sum", "field": "price"}, "count": {"op": "count"}},
    )
    document = {
        "_id": 1,
        "customer": {"country": "AT", "name": "ann"},
        "price": {"$numberDecimal": "1.50"},
        "secret": "x",
    }
    change = json.loads(full_definition.change(b"key", 3, bson(document)))
    assert change["version"] == 3
    assert change["row"] == {
        "customer": document["customer"],
        "price": document["price"],
    }


def test_filtered_and_deleted_documents_add_nothing() -> None:
    out = json.loads(shape().change(b"key", 1, bson({"_id": 1, "kind": "a", "on": False})))
    gone = json.loads(shape().change(b"key", 2, None))
    assert out["row"] is None
    assert gone["row"] is None
    assert out["key"] == gone["key"]
