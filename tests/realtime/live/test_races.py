"""Races between a result and its changes: other subscribers, renewals, a server's death."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.documents.collection import CollectionClient
from tests.own_server import another_server
from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import Answer, begin, subscribe
from tests.realtime.live.conftest import BackgroundProcesses
from tests.realtime.live.test_resuming import key_of

WRITERS = 2


@contextmanager
def writing(todos: CollectionClient) -> Iterator[None]:
    """Have clients change the collection until the block ends."""
    over = threading.Event()

    def write(number: int) -> None:
        rng = random.Random(number)
        while not over.is_set():
            path = f"{todos.path}/documents/w{rng.randrange(20)}"
            if rng.random() < 0.3:
                todos.caller.delete(path)
            else:
                todos.caller.put(path, {"n": rng.randrange(200)})

    writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        over.set()
        for writer in writers:
            writer.join()


def test_a_subscriber_that_joins_during_writes_sees_the_same_answer(
    server: str, client: Client, todos: CollectionClient
) -> None:
    unsorted: dict[str, Any] = {"filter": {"n": {"$lt": 100}}}
    window: dict[str, Any] = {"sort": [["n", 1]], "limit": 5}
    with another_server() as other, greeted(other.url, key_of(todos)) as elsewhere:
        pairs = [(unsorted, subscribe(client, "f1", collection=todos.name, **unsorted))]
        pairs += [(window, subscribe(client, "f2", collection=todos.name, **window))]
        with writing(todos):
            for place in (client, elsewhere):
                for number, query in enumerate((unsorted, window) * 3):
                    answer = subscribe(place, f"s{number}", collection=todos.name, **query)
                    pairs.append((query, answer))
        for query, answer in pairs:
            answer.until_shows(todos.query(**query))


def test_a_window_that_ran_out_of_rows_is_read_again_in_the_middle_of_writes(
    client: Client, todos: CollectionClient, background: BackgroundProcesses
) -> None:
    background.start_worker()
    window: dict[str, Any] = {"sort": [["n", 1]], "offset": 1, "limit": 4}
    for start in range(0, 1000, 500):
        todos.insert_many([{"_id": f"d{n:03}", "n": n} for n in range(start, start + 500)])
    answer = subscribe(client, "s", collection=todos.name, **window)
    with writing(todos):
        for below in (300, 600, 900):
            gone = {"filter": {"n": {"$lt": below}}, "limit": 1000}
            assert todos.caller.post(f"{todos.path}/documents:delete", gone).ok
            answer.until("event")
    answer.until_shows(todos.query(**window), timeout_s=90.0)


def test_a_client_of_a_server_that_died_gets_what_it_missed_from_another(
    server: str, todos: CollectionClient
) -> None:
    query = {"collection": todos.name}
    with another_server() as other:
        with greeted(other.url, key_of(todos)) as client:
            answer = subscribe(client, "s", **query)
            todos.insert({"_id": "a"})
            answer.until_shows([{"_id": "a"}])
            other.process.kill()
            client.closed_by_death()
        todos.insert({"_id": "b"})
        todos.caller.delete(f"{todos.path}/documents/a")
        with greeted(server, key_of(todos)) as client:
            back = Answer(client=client, name="s", items=answer.items, seq=answer.seq)
            client.send(type="subscribe", id="s", resume=answer.resume, **query)
            back.until_shows([{"_id": "b"}])
            assert {frame["type"] for frame in back.frames} <= {"ready", "event"}


def test_a_document_recreated_during_a_subscribe_is_in_the_answer(
    client: Client, todos: CollectionClient
) -> None:
    for number in range(10):
        todos.insert({"_id": "a", "n": number})
        answer = begin(client, f"s{number}", collection=todos.name)
        todos.caller.delete(f"{todos.path}/documents/a")
        todos.insert({"_id": "a", "n": number + 1})
        answer.until_shows([{"_id": "a", "n": number + 1}])
        answer = begin(client, f"t{number}", collection=todos.name)
        todos.caller.delete(f"{todos.path}/documents/a")
        answer.until_shows([])
