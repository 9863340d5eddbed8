"""A new grid epoch while clients are subscribed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from io import StringIO

import psycopg
import pytest
from django.core.management import call_command
from django.db import connections

from tests.documents.collection import CollectionClient
from tests.own_server import another_server
from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import subscribe
from tests.realtime.live.conftest import BackgroundProcesses
from tests.realtime.live.test_resuming import key_of
from tests.waiting import wait_until

pytestmark = pytest.mark.backend("postgres", reason="it resizes the grid of PostgreSQL")

MOVED_S = 60.0
#: Between writes while the grid is resized.
BETWEEN_S = 0.05


@pytest.fixture
def client(todos: CollectionClient) -> Iterator[Client]:
    """A connection to a server of its own, which follows one grid after the other."""
    with another_server() as other, greeted(other.url, key_of(todos)) as client:
        yield client


@pytest.fixture
def output(postgres_url: str) -> Iterator[StringIO]:
    """The output of a command. Afterwards, the original grid is in use again."""
    yield StringIO()
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("UPDATE documents_gridepoch SET retired_at = NULL WHERE number = 1")
        admin.execute("DELETE FROM documents_gridepoch WHERE number = 2")


def resize(output: StringIO) -> None:
    """Give the shared grid another size in both dimensions, and wait until it has taken over."""
    try:
        size = ("--write-partitions", "3", "--query-partitions", "2")
        call_command("resize_grid", *size, stdout=output)
    finally:
        connections.close_all()


def test_subscriptions_continue_when_the_grid_is_resized_in_both_dimensions(
    client: Client,
    todos: CollectionClient,
    changed_background: BackgroundProcesses,
    output: StringIO,
) -> None:
    answers = [
        subscribe(client, "unsorted", collection=todos.name),
        subscribe(client, "sorted", collection=todos.name, sort=[["n", 1]], limit=10),
    ]
    todos.insert({"_id": "a", "n": 1})
    expected = [{"_id": "a", "n": 1}]
    for answer in answers:
        answer.until_shows(expected)
    with ThreadPoolExecutor(1) as aside:
        resized = aside.submit(resize, output)
        # Each write is notified before the next one.
        while not wait([resized], timeout=BETWEEN_S).done:
            document = {"_id": f"d{len(expected):05}", "n": len(expected) + 1}
            todos.insert(document)
            expected.append(document)
            answers[0].until_shows(expected)
        resized.result()
    assert output.getvalue().splitlines() == [
        "Grid 2 with 2x3 partitions is starting.",
        "All of its nodes are ready; servers switch to it.",
        "Grid 2 has taken over.",
    ]
    for answer in answers:
        answer.until_shows(expected[: 10 if answer.name == "sorted" else None])
        numbers = [event["seq"] for event in answer.events]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len({(event["key"], event["version"]) for event in answer.events}) == len(numbers)
        assert [frame for frame in answer.frames if frame["type"] == "reset"] == []
    registry = "{rillbase}:events:1:1:registry:0"
    wait_until(
        lambda: not changed_background.valkey.exists(registry),
        what="the old grid's keys to go",
        timeout_s=MOVED_S,
    )
