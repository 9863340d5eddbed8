"""Another grid epoch, while clients watch."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.documents.collection import MadeCollection
from tests.own_server import another_server
from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import subscribe
from tests.realtime.live.conftest import Backstage
from tests.realtime.live.test_going_on import key_of
from tests.waiting import wait_until

MOVED_S = 60.0


@pytest.fixture
def client(todos: MadeCollection) -> Iterator[Client]:
    """A connection to a server of its own, which follows one grid after the other."""
    with another_server() as other, greeted(other.url, key_of(todos)) as client:
        yield client


def test_clients_go_on_when_the_grid_is_another_one(
    client: Client, todos: MadeCollection, backstage: Backstage, postgres_url: str
) -> None:
    answers = [
        subscribe(client, "unsorted", collection=todos.name),
        subscribe(client, "sorted", collection=todos.name, sort=[["n", 1]], limit=10),
    ]
    todos.insert({"_id": "a", "n": 1})
    expected = [{"_id": "a", "n": 1}]
    for answer in answers:
        answer.until_shows(expected)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("INSERT INTO documents_gridepoch (number, write_partitions) VALUES (2, 3)")
        try:
            requests = "{rillbase}:events:1:2:requests:0"
            wait_until(
                lambda: backstage.valkey.xlen(requests) >= 2,
                what="the queries to be registered with the new grid",
                timeout_s=MOVED_S,
            )
            admin.execute(
                "UPDATE documents_gridepoch SET retired_at = clock_timestamp() WHERE number = 1"
            )
            for number in range(2, 12):
                document = {"_id": f"d{number:02}", "n": number}
                todos.insert(document)
                expected.append(document)
            for answer in answers:
                answer.until_shows(expected[: 10 if answer.name == "sorted" else None])
                numbers = [event["seq"] for event in answer.events]
                assert numbers == list(range(1, len(numbers) + 1))
                assert len({(event["key"], event["version"]) for event in answer.events}) == len(
                    numbers
                )
                assert all(frame["type"] != "reset" for frame in answer.frames)
            registry = "{rillbase}:events:1:1:registry:0"
            wait_until(
                lambda: not backstage.valkey.exists(registry),
                what="the old grid's keys to go",
                timeout_s=MOVED_S,
            )
        finally:
            admin.execute("UPDATE documents_gridepoch SET retired_at = NULL WHERE number = 1")
            admin.execute("DELETE FROM documents_gridepoch WHERE number = 2")
