"""The storage node is killed while callers write to native collections."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from documents.backend import Backend
from tests.documents.collection import CollectionClient, make_collection
from tests.own_node import OwnNode
from tests.own_server import another_server
from tests.waiting import wait_until

WRITERS, WRITES = 4, 40


@pytest.fixture
def counters(own_node: OwnNode) -> Iterator[CollectionClient]:
    """A native collection on a server in a separate process."""
    with another_server(STORAGE_URL=own_node.url) as other:
        collection = make_collection(
            other.url, backend=Backend.NATIVE, indexes=[("n", [("n", 1)], False)]
        )
        collection.insert_many([{"_id": writer, "n": 0} for writer in range(WRITERS)])
        yield collection


def test_acknowledged_writes_survive_and_each_is_executed_once(
    own_node: OwnNode, counters: CollectionClient
) -> None:
    accepted = [0] * WRITERS

    def increment(writer: int) -> None:
        """Write as a cautious client does: repeat with the same key until it is accepted."""
        path = f'{counters.path}/documents/~{{"$numberInt":"{writer}"}}'
        for number in range(WRITES):
            key = f"{writer}-{number}"
            update = {"$inc": {"n": 1}}
            answer = counters.caller.patch(path, update, Idempotency_Key=key)
            while answer.status_code in (409, 503):
                answer = counters.caller.patch(path, update, Idempotency_Key=key)
            assert answer.json()["document"]["n"] == number + 1, answer.text
            accepted[writer] += 1

    threads = [threading.Thread(target=increment, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for part in (1, 2, 3):
        wait_until(
            lambda part=part: sum(accepted) > part * WRITERS * WRITES // 4,  # type: ignore[misc]
            what="writes",
        )
        own_node.kill()
        own_node.start()
    for thread in threads:
        thread.join()
    assert accepted == [WRITES] * WRITERS
    assert counters.query({"n": WRITES}, sort=[["_id", 1]]) == [
        {"_id": writer, "n": WRITES} for writer in range(WRITERS)
    ]
    assert counters.versions() == dict.fromkeys(range(WRITERS), WRITES + 1)


def test_calls_to_an_unavailable_node_are_rejected_and_others_continue(
    own_node: OwnNode, counters: CollectionClient
) -> None:
    in_postgres = make_collection(
        counters.caller.base, account=counters.account, backend=Backend.POSTGRES
    )
    own_node.kill()
    answer = counters.caller.post(f"{counters.path}/documents", {"n": 1})
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer.headers["Retry-After"] == "1"
    in_postgres.insert({"_id": "a"})
    own_node.start()
    counters.insert({"_id": "a", "n": 1})
    assert counters.ids({"n": 1}) == ["a"]
