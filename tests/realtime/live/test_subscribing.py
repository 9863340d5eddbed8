"""A result arrives, then every change of it."""

from __future__ import annotations

from tests.documents.collection import CollectionClient
from tests.realtime.client import Client
from tests.realtime.live.answer import subscribe
from tests.waiting import wait_until


def test_the_answer_arrives_and_then_every_change_of_it(
    client: Client, todos: CollectionClient
) -> None:
    todos.insert({"_id": "a", "n": 1})
    answer = subscribe(client, "s", collection=todos.name, filter={"n": {"$lt": 10}})
    assert answer.documents == [{"_id": "a", "n": 1}]
    assert [frame["type"] for frame in answer.frames] == ["result", "ready"]
    todos.insert({"_id": "b", "n": 2})
    answer.until_shows([{"_id": "a", "n": 1}, {"_id": "b", "n": 2}])
    todos.caller.patch(f"{todos.path}/documents/a", {"$set": {"n": 3}})
    answer.until_shows([{"_id": "a", "n": 3}, {"_id": "b", "n": 2}])
    todos.caller.patch(f"{todos.path}/documents/b", {"$set": {"n": 30}})
    answer.until_shows([{"_id": "a", "n": 3}])
    todos.caller.delete(f"{todos.path}/documents/a")
    answer.until_shows([])
    matches = [(e["match"], e["key"], e["version"], e.get("reason")) for e in answer.events]
    assert matches == [
        ("add", "b", 1, None),
        ("change", "a", 2, None),
        ("remove", "b", 2, "left"),
        ("remove", "a", 3, "deleted"),
    ]
    assert [event["seq"] for event in answer.events] == [1, 2, 3, 4]


def test_a_window_stays_a_window(client: Client, todos: CollectionClient) -> None:
    todos.insert_many([{"_id": f"d{n}", "n": n} for n in range(5)])
    answer = subscribe(client, "s", collection=todos.name, sort=[["n", 1]], limit=3)
    assert [d["n"] for d in answer.documents] == [0, 1, 2]
    todos.insert({"_id": "x", "n": 0.5})
    answer.until_shows([{"_id": "d0", "n": 0}, {"_id": "x", "n": 0.5}, {"_id": "d1", "n": 1}])
    todos.caller.patch(f"{todos.path}/documents/d0", {"$set": {"n": 0.7}})
    answer.until_shows([{"_id": "x", "n": 0.5}, {"_id": "d0", "n": 0.7}, {"_id": "d1", "n": 1}])
    assert "changeIndex" in [event["match"] for event in answer.events]
    todos.caller.delete(f"{todos.path}/documents/x")
    answer.until_shows([{"_id": "d0", "n": 0.7}, {"_id": "d1", "n": 1}, {"_id": "d2", "n": 2}])


def test_a_change_moves_a_document_to_the_front_of_those_changed_last(
    client: Client, todos: CollectionClient
) -> None:
    last_changed = [["$updated", -1]]
    todos.insert_many([{"_id": f"d{n}", "n": n} for n in range(5)])
    before = todos.ids(sort=last_changed)
    answer = subscribe(client, "s", collection=todos.name, sort=last_changed, limit=3)
    assert [document["_id"] for document in answer.documents] == before[:3]
    _change_last(todos, before[4])
    answer.until_shows(todos.query(sort=last_changed, limit=3))
    assert [document["_id"] for document in answer.documents] == [before[4], *before[:2]]
    _change_last(todos, before[1])
    answer.until_shows(todos.query(sort=last_changed, limit=3))
    assert [document["_id"] for document in answer.documents] == [before[1], before[4], before[0]]
    removed = [event["key"] for event in answer.events if event["match"] == "remove"]
    assert before[2] in removed


def _change_last(todos: CollectionClient, name: str) -> None:
    """Change a document in a later millisecond than all others."""
    latest = max(item["updated_at"] for item in todos.ask({}).json()["items"])

    def is_later() -> bool:
        changed = todos.caller.patch(f"{todos.path}/documents/{name}", {"$inc": {"n": 10}})
        return bool(changed.json()["updated_at"] > latest)

    wait_until(is_later, what="a later millisecond")


def test_a_sort_by_time_of_groups_is_rejected(client: Client, todos: CollectionClient) -> None:
    group = {"by": ["n"], "measures": {"count": {"op": "count"}}}
    client.send(
        type="subscribe", id="s", collection=todos.name, group=group, sort=[["$updated", -1]]
    )
    refusal = client.wait_for(lambda f: f["type"] == "error")
    assert refusal["error"]["code"] == "invalid_sort"


def test_a_write_over_the_connection_is_delivered_as_an_event(
    client: Client, todos: CollectionClient
) -> None:
    answer = subscribe(client, "s", collection=todos.name)
    ack = client.ask("insert", "w", collection=todos.name, document={"_id": "a"})
    assert ack["version"] == 1
    answer.until_shows([{"_id": "a"}])


def test_unsubscribing_ends_it(client: Client, todos: CollectionClient) -> None:
    answer = subscribe(client, "s", collection=todos.name)
    client.send(type="subscribe", id="s", collection=todos.name)
    refusal = client.wait_for(lambda f: f["type"] == "error")
    assert refusal["error"]["code"] == "id_in_use"
    client.send(type="unsubscribe", id="s")
    assert answer.until("end")["error"] is None
    subscribe(client, "s", collection=todos.name)
