"""Nodes in separate processes, on a real PostgreSQL and a real Valkey."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from documents.outbox.events import stream
from realtime.grid.layout import NodeSpec
from tests.documents.collection import CollectionClient, make_collection
from tests.realtime.grid.conftest import RunningGrid
from tests.realtime.grid.wire import Log, Notification, Query, register
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]
FILTER_NODES = {"filter:0", "filter:1"}


@pytest.fixture
def things(server: str) -> CollectionClient:
    return make_collection(server)


def query(things: CollectionClient, *, is_sorted: bool = False) -> Query:
    """Return a query of values of at least five."""
    return Query(
        secrets.token_bytes(16),
        things.account.tenant.id,
        things.collection.id,
        {"n": {"$gte": 5}},
        is_sorted,
    )


async def watched(url: str, registered: Query, notifications: Log) -> Query:
    """Register a query and wait until all its nodes watch it."""
    sources = FILTER_NODES | ({"sort"} if registered.sorted else set())
    await register(url, registered)
    await until(
        lambda: (
            {notification.source for notification in notifications.of("active", registered.hash)}
            >= sources
        ),
        "all nodes to watch the query",
    )
    return registered


async def insert(things: CollectionClient, *numbers: int) -> None:
    for number in numbers:
        await asyncio.to_thread(things.insert, {"n": number})


async def test_a_registered_query_is_notified_of_its_writes(
    nodes: RunningGrid, notifications: Log, things: CollectionClient, valkey_url: str
) -> None:
    registered = await watched(valkey_url, query(things), notifications)
    await insert(things, 4, 5, 3, 6)
    await until(lambda: len(notifications.of("match", registered.hash)) >= 2, "both matches")
    await insert(things, 7)
    await until(lambda: len(notifications.of("match", registered.hash)) >= 3, "the third match")
    assert len(notifications.of("match", registered.hash)) == 3


async def test_a_sorted_query_is_notified_of_its_window(
    nodes: RunningGrid, notifications: Log, things: CollectionClient, valkey_url: str
) -> None:
    registered = await watched(valkey_url, query(things, is_sorted=True), notifications)
    await insert(things, 4, 5)
    await until(lambda: bool(notifications.of("window", registered.hash)), "the window")
    (notification,) = notifications.of("window", registered.hash)
    assert notification.source == "sort"


async def test_a_killed_node_is_restarted_and_rebuilds_its_state(
    nodes: RunningGrid, notifications: Log, things: CollectionClient, valkey_url: str
) -> None:
    registered = await watched(valkey_url, query(things), notifications)
    await insert(things, *range(5, 25))
    await until(lambda: len(notifications.of("match", registered.hash)) == 20, "the matches")
    old_token = max(
        notification.token
        for notification in notifications.read()
        if notification.source == "filter:0"
    )
    os.kill(nodes.tasks["filter:0:0"].pid, signal.SIGKILL)
    await until(lambda: nodes.tasks["filter:0:0"].ended() is not None, "the node's end")
    assert "SIGKILL" in (nodes.tasks["filter:0:0"].ended() or "")
    await insert(things, *range(25, 45))
    nodes.start("filter:0:0")
    await until(lambda: bool(rebuilt(notifications, old_token)), "the rebuild")
    life = rebuilt(notifications, old_token)
    kinds = [notification.kind for notification in life if notification.kind != "tick"]
    assert kinds[0] == "start"
    assert kinds.index("rebase") < kinds.index("rebased")
    assert [notification.count for notification in life] == list(range(1, len(life) + 1))


def rebuilt(notifications: Log, old_token: int) -> list[Notification]:
    """Return what the first filter node has reported in a later term in which it rebuilt, if any.

    A slow machine may need several: a lease that could not be renewed in time ends a term.
    """
    entries = [
        notification for notification in notifications.read() if notification.source == "filter:0"
    ]
    tokens = {
        notification.token
        for notification in entries
        if notification.kind == "rebased" and notification.token > old_token
    }
    return (
        [notification for notification in entries if notification.token == max(tokens)]
        if tokens
        else []
    )


async def test_a_stopped_node_releases_its_lease_immediately(
    nodes: RunningGrid, notifications: Log
) -> None:
    nodes.tasks["filter:0:1"].stop()
    await until(lambda: nodes.tasks["filter:0:1"].ended() is not None, "the node's end")
    _, held = await nodes.read_leases()
    assert held["filter:0:1"].until_ms <= (await nodes.read_leases())[0] // 1000


async def test_nodes_survive_an_emptied_event_layer(
    nodes: RunningGrid, client: redis.Redis, things: CollectionClient, valkey_url: str
) -> None:
    client.flushdb()
    notifications = Log(client)
    await until(
        lambda: (
            {notification.source for notification in notifications.of("rebased")} >= FILTER_NODES
        ),
        "the nodes to begin another life",
    )
    await nodes.until_watching()
    registered = await watched(valkey_url, query(things), notifications)
    await insert(things, 5)
    await until(lambda: bool(notifications.of("match", registered.hash)), "the match")


async def test_an_unreadable_entry_stops_no_node(
    nodes: RunningGrid,
    notifications: Log,
    client: redis.Redis,
    things: CollectionClient,
    valkey_url: str,
) -> None:
    registered = await watched(valkey_url, query(things), notifications)
    for partition in range(2):
        client.xadd(stream(1, 1, partition), {"e": b"\xff is no entry"})
    await until(lambda: len(notifications.of("rebased")) >= 2, "both nodes to look again")
    await insert(things, 5)
    await until(lambda: bool(notifications.of("match", registered.hash)), "the match")


async def test_every_node_publishes_ticks(nodes: RunningGrid, notifications: Log) -> None:
    await until(
        lambda: (
            {notification.source for notification in notifications.of("tick")}
            == FILTER_NODES | {"sort"}
        ),
        "ticks of all nodes",
    )


_ABANDON = """
import os
from realtime.grid.layout import NodeSpec
from realtime.grid.processes import ProcessLauncher
print(ProcessLauncher().start(NodeSpec(1, 1, 0, 0, 2)).pid, flush=True)
os.read(0, 1)
os._exit(1)
"""


def test_a_node_ends_after_its_supervisor_has_died() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _ABANDON],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        node = int(parent.stdout.readline())
        assert Path(f"/proc/{node}").exists()
        parent.stdin.write(b"x")
        parent.stdin.close()
    # Nobody waits for an orphan but the machine's first process, so its pid may linger.
    asyncio.run(until(lambda: not _is_running(node), "the node's end"))


def _is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_a_node_has_a_text_form() -> None:
    node = NodeSpec(1, 2, 0, None, 4)
    assert NodeSpec.from_json(node.to_json()) == node
    assert node.name == "sort:0"
