"""Live queries continue while their collection moves to the other backend."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from documents.backend import Backend
from tests.documents.collection import CollectionClient
from tests.documents.moving import MOVED_S, OTHER, move
from tests.realtime.client import Client
from tests.realtime.live.answer import Answer, subscribe
from tests.realtime.live.conftest import BackgroundProcesses

COUNT = {"by": [], "measures": {"n": {"op": "count"}}}


@contextmanager
def inserting(todos: CollectionClient) -> Iterator[list[int]]:
    """Insert documents until the block ends; yield their numbers."""
    numbers, stop = list[int](), threading.Event()

    def insert() -> None:
        while not stop.is_set():
            todos.insert({"_id": len(numbers), "n": len(numbers)})
            numbers.append(len(numbers))

    thread = threading.Thread(target=insert)
    thread.start()
    try:
        yield numbers
    finally:
        stop.set()
        thread.join()


def test_live_queries_continue_in_the_other_backend(
    todos: CollectionClient, client: Client, background: BackgroundProcesses, backend: Backend
) -> None:
    todos.insert({"_id": "first", "n": -1})
    answers = [
        subscribe(client, "unsorted", collection=todos.name),
        subscribe(client, "sorted", collection=todos.name, sort=[["n", -1]], limit=10),
        subscribe(client, "group", collection=todos.name, group=COUNT),
    ]
    with inserting(todos) as numbers:
        move(todos, OTHER[backend])
        for answer in answers:
            assert answer.until("reset", MOVED_S)["reason"] == "moved"
            answer.until("ready", MOVED_S)
    todos.insert({"_id": "last", "n": 1_000_000})
    unsorted, newest, group = answers
    every = {"first", "last", *numbers}
    until_ids(unsorted, every)
    shown = [1_000_000, *reversed(numbers)][:10]
    while [document["n"] for document in newest.documents] != shown:
        newest.next(MOVED_S)
    group.until_shows([{"n": len(every)}], timeout_s=MOVED_S)


def until_ids(answer: Answer, expected: set[object]) -> None:
    while {document["_id"] for document in answer.documents} != expected:
        answer.next(MOVED_S)
