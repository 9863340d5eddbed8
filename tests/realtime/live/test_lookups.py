"""Documents with lookups: changes on either side are delivered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.documents.collection import CollectionClient, make_collection
from tests.realtime.client import opened
from tests.realtime.live.answer import begin, subscribe
from tests.realtime.live.test_rights import anonymous_key, change_rules

if TYPE_CHECKING:
    from tests.realtime.client import Client
    from tests.realtime.live.conftest import BackgroundProcesses


@pytest.fixture
def people(todos: CollectionClient) -> CollectionClient:
    return make_collection(todos.caller.base, account=todos.account)


def looking_up(todos: CollectionClient, people: CollectionClient, **more: object) -> dict[str, Any]:
    lookup = [{"from": people.name, "local": "owner", "as": "by"}]
    return {"collection": todos.name, "lookup": lookup, **more}


def test_a_change_of_either_side_is_delivered(
    client: Client, todos: CollectionClient, people: CollectionClient
) -> None:
    people.insert({"_id": "ann", "age": 1})
    todos.insert({"_id": "a", "owner": "ann"})
    answer = subscribe(client, "s", **looking_up(todos, people))
    shown = {"_id": "a", "owner": "ann", "by": {"_id": "ann", "age": 1}}
    assert answer.documents == [shown]
    people.caller.patch(f"{people.path}/documents/ann", {"$set": {"age": 2}})
    answer.until_shows([{**shown, "by": {"_id": "ann", "age": 2}}])
    (changed,) = answer.events
    assert (changed["match"], changed["key"], changed["version"]) == ("change", "a", 1)
    people.caller.delete(f"{people.path}/documents/ann")
    answer.until_shows([{**shown, "by": None}])
    people.insert({"_id": "ann", "age": 3})
    answer.until_shows([{**shown, "by": {"_id": "ann", "age": 3}}])
    todos.caller.patch(f"{todos.path}/documents/a", {"$set": {"owner": ["bob", "ann"]}})
    ann = {"_id": "ann", "age": 3}
    answer.until_shows([{"_id": "a", "owner": ["bob", "ann"], "by": [ann]}])
    people.insert({"_id": "bob"})
    answer.until_shows([{"_id": "a", "owner": ["bob", "ann"], "by": [{"_id": "bob"}, ann]}])


def test_one_transaction_over_both_sides_is_one_change(
    client: Client, todos: CollectionClient, people: CollectionClient
) -> None:
    answer = subscribe(client, "s", **looking_up(todos, people))
    operations = [
        {"collection": people.name, "insert": {"_id": "ann"}},
        {"collection": todos.name, "insert": {"_id": "a", "owner": "ann"}},
    ]
    todos.caller.post("/v1/transactions", {"operations": operations})
    answer.until_shows([{"_id": "a", "owner": "ann", "by": {"_id": "ann"}}])
    assert [event["match"] for event in answer.events] == ["add"]


def test_hidden_documents_are_absent_and_a_changed_rule_hides_them(
    server: str, background: BackgroundProcesses
) -> None:
    todos = make_collection(server, rules={"read": True})
    people = make_collection(server, account=todos.account, rules={"read": {"public": True}})
    people.insert_many([{"_id": "ann", "public": True}, {"_id": "bob", "age": 1}])
    todos.insert_many([{"_id": "a", "owner": "ann"}, {"_id": "b", "owner": "bob"}])
    ann = {"_id": "ann", "public": True}
    first = {"_id": "a", "owner": "ann", "by": ann}
    second = {"_id": "b", "owner": "bob", "by": None}
    with opened(server) as anonymous:
        anonymous.send(type="hello", key=anonymous_key(todos))
        answer = subscribe(anonymous, "s", **looking_up(todos, people))
        assert answer.documents == [first, second]
        people.caller.patch(f"{people.path}/documents/bob", {"$set": {"age": 77}})
        people.caller.patch(f"{people.path}/documents/ann", {"$set": {"public": False}})
        answer.until_shows([{**first, "by": None}, second])
        people.caller.patch(f"{people.path}/documents/ann", {"$set": {"public": True}})
        answer.until_shows([first, second])
        change_rules(people, {"read": False})
        answer.until_shows([{**first, "by": None}, second])
        assert "77" not in json.dumps([frame.get("document") for frame in answer.events])


def test_a_document_of_a_large_collection_is_read_when_it_is_referenced(
    client: Client,
    todos: CollectionClient,
    people: CollectionClient,
    background: BackgroundProcesses,
) -> None:
    background.start_worker()
    people.insert_many([{"_id": f"p{n}", "n": n} for n in range(1_100)])
    todos.insert({"_id": "a", "owner": "p1"})
    answer = subscribe(client, "s", **looking_up(todos, people))
    assert answer.documents == [{"_id": "a", "owner": "p1", "by": {"_id": "p1", "n": 1}}]
    todos.caller.patch(f"{todos.path}/documents/a", {"$set": {"owner": "p900"}})
    answer.until_shows([{"_id": "a", "owner": "p900", "by": {"_id": "p900", "n": 900}}])
    people.caller.patch(f"{people.path}/documents/p900", {"$set": {"n": 0}})
    answer.until_shows([{"_id": "a", "owner": "p900", "by": {"_id": "p900", "n": 0}}])


def test_new_references_to_a_large_collection_are_delivered_with_their_documents(
    client: Client,
    todos: CollectionClient,
    people: CollectionClient,
    background: BackgroundProcesses,
) -> None:
    background.start_worker()
    people.insert_many([{"_id": f"p{n}", "n": n} for n in range(1_100)])
    people.caller.delete(f"{people.path}/documents/p3")
    todos.insert_many([{"_id": f"t{n}"} for n in range(3)])
    answer = subscribe(client, "s", **looking_up(todos, people))
    assert [document["by"] for document in answer.documents] == [None, None, None]
    owners: list[str] = []
    for number in range(2, 6):
        owners = [f"p{number}", "nobody", f"p{900 + number}"]
        for at, owner in enumerate(owners):
            todos.caller.patch(f"{todos.path}/documents/t{at}", {"$set": {"owner": owner}})
    last = [{"_id": "p5", "n": 5}, None, {"_id": "p905", "n": 905}]
    shown = zip(owners, last, strict=True)
    answer.until_shows(
        [{"_id": f"t{at}", "owner": owner, "by": by} for at, (owner, by) in enumerate(shown)]
    )
    todos.caller.patch(f"{todos.path}/documents/t1", {"$set": {"owner": "p3"}})
    answer.until_shows(
        [
            {"_id": "t0", "owner": "p5", "by": last[0]},
            {"_id": "t1", "owner": "p3", "by": None},
            {"_id": "t2", "owner": "p905", "by": last[2]},
        ]
    )


def test_a_change_hidden_by_the_projection_is_not_delivered(
    client: Client, todos: CollectionClient, people: CollectionClient
) -> None:
    people.insert({"_id": "ann", "name": "Ann", "salary": 1})
    todos.insert({"_id": "a", "owner": "ann", "text": "x"})
    shown = {"owner": 1, "by.name": 1}
    answer = subscribe(client, "s", **looking_up(todos, people, projection=shown))
    document = {"_id": "a", "owner": "ann", "by": {"name": "Ann"}}
    assert answer.documents == [document]
    people.caller.patch(f"{people.path}/documents/ann", {"$set": {"salary": 77}})
    people.caller.patch(f"{people.path}/documents/ann", {"$set": {"name": "Anne"}})
    answer.until_shows([{**document, "by": {"name": "Anne"}}])
    assert [event["match"] for event in answer.events] == ["change"]
    assert "77" not in json.dumps([frame.get("document") for frame in answer.events])


def test_a_projection_without_ids_leaves_rows_their_keys(
    client: Client, todos: CollectionClient, people: CollectionClient
) -> None:
    people.insert({"_id": "ann", "tags": [1, 2, 3]})
    todos.insert({"_id": "a", "owner": "ann"})
    shown = {"_id": 0, "by.tags": {"$slice": [1, 2]}, "owner": 0}
    answer = subscribe(client, "s", **looking_up(todos, people, projection=shown))
    assert answer.documents == [{"by": {"_id": "ann", "tags": [2, 3]}}]
    people.caller.patch(f"{people.path}/documents/ann", {"$set": {"tags": [4, 5, 6]}})
    answer.until_shows([{"by": {"_id": "ann", "tags": [5, 6]}}])
    assert answer.events[0]["key"] == "a"


def test_a_collection_that_is_looked_up_and_deleted_ends_the_subscription(
    client: Client, todos: CollectionClient, people: CollectionClient
) -> None:
    answer = subscribe(client, "s", **looking_up(todos, people))
    admin = {"Authorization": f"Bearer {todos.account.admin_key}"}
    path = f"/api/v1/tenants/{todos.account.slug}/collections/{people.name}"
    todos.caller.__class__(todos.caller.base, admin).delete(path)
    assert answer.until("end")["error"]["code"] == "not_found"


def test_what_cannot_be_looked_up_is_refused(client: Client, todos: CollectionClient) -> None:
    group = {"by": [], "measures": {"n": {"op": "count"}}}
    lookup = [{"from": todos.name, "local": "a", "as": "b"}]
    both = begin(client, "s", collection=todos.name, group=group, lookup=lookup)
    client.wait_for(lambda f: f.get("id") == both.name and f["type"] == "error")
