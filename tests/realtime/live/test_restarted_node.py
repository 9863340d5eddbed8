"""Live queries of native collections while the storage node is killed or restarted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from documents.backend import Backend
from tests.documents.collection import CollectionClient, make_collection
from tests.own_node import OwnNode
from tests.own_server import another_server
from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import Answer, subscribe
from tests.realtime.live.conftest import BackgroundProcesses, SharedBackground, running
from tests.realtime.live.test_failures import RECOVERY_S, until_state
from tests.realtime.live.test_resuming import key_of
from tests.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.backend("native", reason="it restarts the storage node")

WRITES = 300
COUNT = {"by": [], "measures": {"n": {"op": "count"}}}


@dataclass
class OwnInstallation:
    """A server with a storage node, a relay and a grid of its own."""

    node: OwnNode
    background: BackgroundProcesses
    todos: CollectionClient


@pytest.fixture
def installation(
    own_node: OwnNode, shared_background: SharedBackground, valkey_url: str
) -> Iterator[OwnInstallation]:
    shared_background.stop()
    with another_server() as other, running(other.url, valkey_url) as background:
        background.use(Backend.NATIVE)
        wait_until(background.watches, what="the nodes to run", timeout_s=RECOVERY_S)
        yield OwnInstallation(own_node, background, make_collection(other.url))


@pytest.fixture
def client(installation: OwnInstallation) -> Iterator[Client]:
    todos = installation.todos
    with greeted(todos.caller.base, key_of(todos)) as client:
        yield client


def watched(client: Client, todos: CollectionClient) -> list[Answer]:
    return [
        subscribe(client, "unsorted", collection=todos.name),
        subscribe(client, "sorted", collection=todos.name, sort=[["n", -1]], limit=1_000),
        subscribe(client, "groups", collection=todos.name, group=COUNT),
    ]


def by_id(documents: list[Any]) -> list[Any]:
    return sorted(documents, key=lambda document: str(document["_id"]))


def test_subscribers_are_stale_while_the_node_is_away_and_then_miss_nothing(
    installation: OwnInstallation, client: Client
) -> None:
    node, todos = installation.node, installation.todos
    todos.insert({"_id": "a", "n": 1})
    answers = watched(client, todos)
    node.kill()
    for answer in answers:
        until_state(answer, "stale")
    node.start()
    todos.insert({"_id": "b", "n": 2})
    both: list[Any] = [{"_id": "a", "n": 1}, {"_id": "b", "n": 2}]
    expected = (both, both[::-1], [{"n": 2}])
    for answer, documents in zip(answers, expected, strict=True):
        answer.until_shows(documents, timeout_s=RECOVERY_S)
        until_state(answer, "live", timeout_s=RECOVERY_S)
    todos.caller.delete(f"{todos.path}/documents/a")
    for answer, documents in zip(answers, (both[1:], both[1:], [{"n": 1}]), strict=True):
        answer.until_shows(documents, timeout_s=RECOVERY_S)


def test_every_event_arrives_although_the_node_is_killed_under_writes(
    installation: OwnInstallation, client: Client
) -> None:
    node, todos = installation.node, installation.todos
    unsorted, *_ = watched(client, todos)
    done = threading.Event()

    def write() -> None:
        for number in range(WRITES):
            path = f"{todos.path}/documents"
            while todos.caller.post(path, {"_id": f"{number:04}", "n": number}).status_code == 503:
                pass
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    for documents in (WRITES // 3, 2 * WRITES // 3):
        while len(unsorted.documents) < documents:
            unsorted.next(RECOVERY_S)
        node.kill()
        node.start()
    writer.join(TIMEOUT_S)
    assert done.is_set()
    expected = by_id(todos.query(limit=WRITES))
    assert len(expected) == WRITES
    while by_id(unsorted.documents) != expected:
        unsorted.next(RECOVERY_S)


def test_nothing_is_reset_by_a_clean_restart(installation: OwnInstallation, client: Client) -> None:
    node, todos = installation.node, installation.todos
    answers = watched(client, todos)
    todos.insert({"_id": "a", "n": 1})
    for answer in answers:
        answer.until("event")
    assert node.stop() == 0
    node.start()
    todos.insert({"_id": "b", "n": 2})
    for answer in answers:
        answer.until("event", timeout_s=RECOVERY_S)
        types = {frame["type"] for frame in answer.frames}
        assert types <= {"result", "ready", "event", "status"}, types
