"""One client that reads slowly or asks for too much is its own problem."""

from __future__ import annotations

import secrets
import threading

from tests.documents.collection import CollectionClient
from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import begin, subscribe

#: Compression would make nothing of something more regular.
DOCUMENT = {"text": secrets.token_urlsafe(20_000)}


def key_of(todos: CollectionClient) -> str:
    return todos.caller.headers["Authorization"].removeprefix("Bearer ")


def test_a_client_that_does_not_read_delays_no_other_and_catches_up(
    server: str, client: Client, todos: CollectionClient
) -> None:
    quick = subscribe(client, "quick", collection=todos.name, projection={"n": 1})
    with greeted(server, key_of(todos), by_socket=True) as sleeper:
        slow = subscribe(sleeper, "slow", collection=todos.name)
        for number in range(60):
            documents = [{"_id": f"d{n}", "n": number, **DOCUMENT} for n in range(30)]
            operations = [{"replace": {"id": d["_id"], "document": d}} for d in documents]
            todos.caller.post(f"{todos.path}/documents:bulk", {"operations": operations})
            while [d["n"] for d in quick.documents] != [number] * 30:
                quick.next()
        expected = todos.query(limit=1000)
        slow.until_shows(expected, timeout_s=60.0)
        assert len(slow.events) < 60 * 30


def test_a_connection_has_at_most_a_thousand_subscriptions(
    client: Client, todos: CollectionClient
) -> None:
    for number in range(1001):
        client.send(type="subscribe", id=f"s{number}", collection=todos.name, limit=1 + number % 3)
    refusal = client.wait_for(lambda f: f["type"] == "error", timeout_s=60.0)
    assert refusal["id"] == "s1000"
    assert refusal["error"]["code"] == "too_many_subscriptions"
    begin(client, "s999", collection=todos.name)
    assert client.wait_for(lambda f: f["type"] == "error")["error"]["code"] == "id_in_use"


def test_a_result_of_many_rows_is_sent_in_parts(client: Client, todos: CollectionClient) -> None:
    for start in range(0, 300, 100):
        todos.insert_many([{"_id": f"d{n:03}", **DOCUMENT} for n in range(start, start + 100)])
    answer = subscribe(client, "s", collection=todos.name)
    parts = [frame["part"] for frame in answer.frames if frame["type"] == "result"]
    assert parts == list(range(len(parts)))
    assert len(parts) > 1
    assert len(answer.items) == 300


def test_results_of_large_documents_are_sent_one_after_the_other_up_to_a_limit(
    client: Client, todos: CollectionClient
) -> None:
    text = "x" * 1_000_000
    for number in range(70):
        todos.insert({"_id": number, "n": number, "text": text})
    few = [begin(client, f"s{n}", collection=todos.name, filter={"n": {"$lt": 30}}) for n in (1, 2)]
    for answer in few:
        answer.until("ready")
        assert [document["_id"] for document in answer.documents] == list(range(30))
    begin(client, "all", collection=todos.name)
    ended = client.wait_for(lambda f: f["type"] == "end" and f["id"] == "all", timeout_s=60.0)
    assert ended["error"]["code"] == "result_too_large"


def test_a_throttled_client_gets_coalesced_changes(client: Client, todos: CollectionClient) -> None:
    answer = subscribe(client, "s", collection=todos.name, options={"throttle_ms": 1500})
    todos.insert({"_id": "a", "n": 0})
    answer.until_shows([{"_id": "a", "n": 0}])
    for number in range(1, 20):
        todos.caller.patch(f"{todos.path}/documents/a", {"$set": {"n": number}})
    answer.until_shows([{"_id": "a", "n": 19}])
    assert len(answer.events) < 15


def test_equal_subscriptions_share_one_query(
    server: str, client: Client, todos: CollectionClient
) -> None:
    answers = [subscribe(client, f"s{n}", collection=todos.name) for n in range(20)]
    writer = threading.Thread(target=todos.insert, args=({"_id": "a"},))
    writer.start()
    for answer in answers:
        answer.until_shows([{"_id": "a"}])
    writer.join()
