"""The Python SDK: its synchronous face, its values, and what it makes of frames."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from rillbase import Binary, Client, ObjectId, ServerError, Timestamp, ejson
from rillbase.ids import segment
from rillbase.order import rank
from rillbase.tables import to_arrow, to_pandas
from rillbase.view import AnswerView, FramesBroken
from tests.sdk.conftest import options_of
from tests.sdk.proxy import Proxy

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient


pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def db(network: Proxy, todos: CollectionClient) -> Iterator[Client]:
    options = options_of(network, todos)
    with Client(str(options["url"]), key=str(options["key"])) as db:
        yield db


def test_documents_are_written_and_read(db: Client, todos: CollectionClient) -> None:
    things = db.collection(todos.name)
    created = things.insert(
        {"n": 1, "at": datetime(2026, 1, 1, tzinfo=UTC), "price": Decimal("1.10")}
    )
    assert isinstance(created.id, ObjectId)
    result = things.get(created.id)
    assert result is not None
    assert result.document == {"_id": created.id, **result.document}
    assert result.document["at"] == datetime(2026, 1, 1, tzinfo=UTC)
    assert things.update(created.id, {"$inc": {"n": 1}}).version == 2
    assert things.merge(created.id, {"price": None}).document.get("price") is None
    assert things.replace("b", {"n": 5}).version == 1
    assert things.where("n", ">=", 2).sort("n", descending=True).project(["n"]).fetch() == [
        {"_id": "b", "n": 5},
        {"_id": created.id, "n": 2},
    ]
    assert [envelope.id for envelope in things.get_many(["b", "none"])] == ["b"]
    assert things.update_many({"n": {"$gt": 0}}, {"$set": {"x": 1}}).changed == 2
    things.delete("b")
    assert things.get("b") is None
    assert things.bulk(lambda steps: steps.insert({"_id": "c"}).delete(created.id))[0]["id"] == "c"
    assert things.delete_many({}).changed == 1
    assert things.count() == 0


def test_a_query_can_be_watched_without_await(db: Client, todos: CollectionClient) -> None:
    things = db.collection(todos.name)
    with pytest.raises(ServerError) as refused:
        next(iter(things.filter({"n": {"$foo": 1}}).watch()))
    assert refused.value.places[0].pointer.startswith("/filter")
    seen = []
    for snapshot in things.watch():
        if snapshot.state != "live":
            continue
        seen.append(snapshot.documents)
        if snapshot.documents:
            break
        things.insert({"_id": "a"})
    assert seen == [[], [{"_id": "a"}]]


def test_only_the_version_that_was_read_is_changed(db: Client, todos: CollectionClient) -> None:
    things = db.collection(todos.name)
    things.insert({"_id": "a", "n": 1})
    things.update("a", {"$inc": {"n": 1}}, if_version=1)
    with pytest.raises(ServerError) as late:
        things.update("a", {"$inc": {"n": 1}}, if_version=1)
    assert late.value.code == "precondition_failed"


def test_every_type_survives_a_round_trip_through_text() -> None:
    values = {
        "id": ObjectId("0123456789abcdef01234567"),
        "decimal": Decimal("1.10"),
        "long": 2**60,
        "float": 2.0,
        "bytes": b"\0\xff",
        "uuid": uuid.uuid4(),
        "binary": Binary(b"x", 5),
        "date": datetime(1960, 1, 1, tzinfo=UTC),
        "stamp": Timestamp(1, 2),
        "list": [None, True, 1, "a"],
    }
    body = ejson.loads(ejson.dumps(values))
    assert body == values
    assert isinstance(body["float"], float)
    assert ejson.encode(re.compile("^a", re.IGNORECASE)) == {
        "$regularExpression": {"pattern": "^a", "options": "i"}
    }
    with pytest.raises(TypeError):
        ejson.dumps({"a": object()})
    with pytest.raises(ValueError, match="time zone"):
        ejson.dumps(datetime(2026, 1, 1))  # noqa: DTZ001 -- refused for that


def test_ids_have_their_place_in_addresses_and_in_the_order() -> None:
    assert [segment(one) for one in ("a/b", 7, "~", ObjectId("0" * 24))] == [
        "a%2Fb",
        "~7",
        "~%22~%22",
        "0" * 24,
    ]
    ordered = [None, -1, 2.5, 3, "a", "b", b"x", ObjectId("0" * 24), False, True]
    assert sorted([*ordered[5:], *ordered[:5]], key=rank) == ordered


def event(seq: int, match: str, key: str, **members: object) -> dict[str, object]:
    return {"seq": seq, "match": match, "key": key, "version": 1, "document": {}, **members}


def test_a_group_counts_when_it_is_complete() -> None:
    view = AnswerView()
    view.result({"items": [], "part": 0, "last": True, "resume": "r0"})
    first = {"id": "t", "index": 0, "count": 2}
    assert view.event(event(1, "add", "a", txn=first)) == []
    view.interrupted()
    assert (view.items, view.resume) == ([], "r0")
    view.event(event(1, "add", "b", txn=first))
    view.event(event(2, "add", "a", txn={**first, "index": 1}, resume="r1"))
    assert [item.id for item in view.items] == ["a", "b"]
    assert view.resume == "r1"


def test_a_hole_in_the_numbering_is_noticed() -> None:
    view = AnswerView()
    view.result({"items": [], "part": 0, "last": True})
    with pytest.raises(FramesBroken):
        view.event(event(2, "add", "a"))


def test_documents_become_tables() -> None:
    documents = [
        {"_id": ObjectId("0" * 24), "n": 1, "tags": [ObjectId("1" * 24)]},
        {"_id": "b", "m": 2.5, "n": None},
        {"_id": "c", "n": 3, "m": "two"},
    ]
    frame = to_pandas(documents)
    assert list(frame.columns) == ["_id", "n", "tags", "m"]
    assert list(frame["_id"]) == ["0" * 24, "b", "c"]
    table = to_arrow(documents)
    assert table.column_names == ["_id", "n", "tags", "m"]
    assert table.column("n").to_pylist() == [1, None, 3]
    assert table.column("tags").to_pylist()[0] == ["1" * 24]
    # Numbers and texts have no type in common.
    assert table.column("m").to_pylist() == [None, "2.5", "two"]
