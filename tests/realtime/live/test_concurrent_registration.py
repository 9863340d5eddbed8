"""Queries that are registered at the same time each get their own answer and their own events."""

from __future__ import annotations

from tests.documents.collection import CollectionClient
from tests.realtime.client import Client
from tests.realtime.live.answer import begin

QUERIES = 150


def test_very_many_queries_at_once_are_answered_each_with_its_own(
    client: Client, todos: CollectionClient
) -> None:
    todos.insert_many([{"_id": f"d{n}", "n": n} for n in range(QUERIES)])
    answers = [
        begin(client, f"s{n}", collection=todos.name, filter={"n": n}) for n in range(QUERIES)
    ]
    for n, answer in enumerate(answers):
        answer.until_shows([{"_id": f"d{n}", "n": n}])
    for answer in answers:
        answer.until("ready")
    todos.insert({"_id": "x", "n": 7})
    answers[7].until_shows([{"_id": "d7", "n": 7}, {"_id": "x", "n": 7}])
