"""Races between readers, writers and nodes, each provoked on purpose."""

from __future__ import annotations

import asyncio
import os
import signal

from tests.documents.collection import CollectionClient
from tests.realtime.grid.conftest import RunningGrid
from tests.realtime.grid.test_nodes import insert, query, things, watched
from tests.realtime.grid.wire import Log, Moment, Query, positions, register, snapshot
from tests.waiting import until

__all__ = ["things"]


async def write(things: CollectionClient, method: str, key: str, body: object = None) -> None:
    path = f"{things.path}/documents/{key}"
    answer = await asyncio.to_thread(things.caller.call, method, path, body)
    assert answer.ok, answer.text


def told_of(notifications: Log, request: Query, name: str) -> set[int]:
    """Return the versions of a document that were reported to the query."""
    items = [one for one in notifications.of("match", request.hash) if name.encode() in one.rest]
    return {one.version for one in items}


async def is_notified_of_another(
    things: CollectionClient, notifications: Log, request: Query
) -> None:
    """Write a document that is reported to the query: everything before it has been handled by
    then.
    """
    before = len(notifications.of("match", request.hash))
    # Both partitions, as a document's id decides where it goes.
    for number in range(12):
        await write(things, "PUT", f"late{before}-{number}", {"n": 9})
    await until(
        lambda: len(notifications.of("match", request.hash)) >= before + 12, "all later matches"
    )


async def test_a_document_that_left_before_the_snapshot_is_not_notified(
    nodes: RunningGrid, notifications: Log, things: CollectionClient, valkey_url: str
) -> None:
    request = query(things)
    place = await positions(valkey_url)
    await write(things, "PUT", "early", {"n": 7})
    await write(things, "PUT", "early", {"n": 1})
    await register(valkey_url, request, read=Moment(place, snapshot()))
    await is_notified_of_another(things, notifications, request)
    assert told_of(notifications, request, "early") == set()


async def test_a_document_deleted_before_the_snapshot_and_recreated_after_it_is_notified_once(
    nodes: RunningGrid, notifications: Log, things: CollectionClient, valkey_url: str
) -> None:
    request = query(things)
    place = await positions(valkey_url)
    await write(things, "PUT", "again", {"n": 7})
    await write(things, "DELETE", "again")
    read = Moment(place, snapshot())
    await write(things, "PUT", "again", {"n": 8})
    await register(valkey_url, request, read=read)
    await is_notified_of_another(things, notifications, request)
    assert told_of(notifications, request, "again") == {3}


async def test_a_write_between_the_snapshot_and_the_registration_is_notified(
    nodes: RunningGrid, notifications: Log, things: CollectionClient, valkey_url: str
) -> None:
    request, other = query(things), query(things)
    read = Moment(await positions(valkey_url), snapshot())
    # Existing subscribers have been notified, so the nodes have already handled it.
    await watched(valkey_url, other, notifications)
    await write(things, "PUT", "between", {"n": 7})
    await until(
        lambda: told_of(notifications, other, "between") == {1}, "the nodes to have seen it"
    )
    await register(valkey_url, request, read=read)
    await until(
        lambda: told_of(notifications, request, "between") == {1}, "the write to be replayed"
    )


async def test_another_subscription_to_an_active_query_does_not_affect_earlier_ones(
    nodes: RunningGrid, notifications: Log, things: CollectionClient, valkey_url: str
) -> None:
    request = await watched(valkey_url, query(things), notifications)
    await insert(things, *range(5, 15))
    await until(lambda: len(notifications.of("match", request.hash)) >= 10, "the first matches")
    first = {one.activation for one in notifications.of("active", request.hash)}
    await register(valkey_url, request, hub="second")
    await insert(things, *range(5, 15))
    await until(lambda: len(notifications.of("match", request.hash)) >= 20, "the later matches")
    assert {one.activation for one in notifications.of("active", request.hash)} == first
    assert notifications.of("too old", request.hash) == []


async def test_a_node_that_lost_its_lease_while_suspended_publishes_nothing(
    nodes: RunningGrid, notifications: Log, things: CollectionClient, valkey_url: str
) -> None:
    request = await watched(valkey_url, query(things), notifications)
    slept = nodes.tasks["filter:0:0"]
    before = newest(notifications)
    os.kill(slept.pid, signal.SIGSTOP)
    try:
        nodes.start("filter:0:0")
        await until(
            lambda: newest(notifications) > before and rebuilt(notifications), "another holder"
        )
        await is_notified_of_another(things, notifications, request)
    finally:
        os.kill(slept.pid, signal.SIGCONT)
    await is_notified_of_another(things, notifications, request)
    # It holds the lease again: a delayed report of an earlier holder would have arrived by now.
    successor = newest(notifications)
    nodes.tasks["filter:0:0"].stop()
    await until(
        lambda: newest(notifications) > successor and rebuilt(notifications),
        "the first one to be back",
    )
    await is_notified_of_another(things, notifications, request)
    tokens = [one.token for one in notifications.read() if one.source == "filter:0"]
    assert tokens == sorted(tokens)


def newest(notifications: Log) -> int:
    return max(one.token for one in notifications.read() if one.source == "filter:0")


def rebuilt(notifications: Log) -> bool:
    """Whether the newest holder has reported its state."""
    return any(one.token == newest(notifications) for one in notifications.of("rebased"))
