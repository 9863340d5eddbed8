"""The races between readers, writers and nodes, each brought about on purpose."""

from __future__ import annotations

import asyncio
import os
import signal

from tests.documents.collection import MadeCollection
from tests.realtime.grid.conftest import RunningGrid
from tests.realtime.grid.test_nodes import insert, query, things, watched
from tests.realtime.grid.wire import Log, Moment, Query, positions, register, snapshot
from tests.waiting import until

__all__ = ["things"]


async def write(things: MadeCollection, method: str, key: str, body: object = None) -> None:
    path = f"{things.path}/documents/{key}"
    answer = await asyncio.to_thread(things.caller.call, method, path, body)
    assert answer.ok, answer.text


def told_of(news: Log, asked: Query, name: str) -> set[int]:
    """Return the versions of a document that the query was told of."""
    found = [one for one in news.of("match", asked.hash) if name.encode() in one.rest]
    return {one.version for one in found}


async def told_of_another(things: MadeCollection, news: Log, asked: Query) -> None:
    """Write something that the query is told of: whatever came before it has been looked at."""
    before = len(news.of("match", asked.hash))
    # Both partitions, as a document's id decides where it goes.
    for number in range(12):
        await write(things, "PUT", f"late{before}-{number}", {"n": 9})
    await until(lambda: len(news.of("match", asked.hash)) >= before + 12, "all later matches")


async def test_a_document_that_left_before_the_snapshot_is_not_told(
    nodes: RunningGrid, news: Log, things: MadeCollection, valkey_url: str
) -> None:
    asked = query(things)
    place = await positions(valkey_url)
    await write(things, "PUT", "early", {"n": 7})
    await write(things, "PUT", "early", {"n": 1})
    await register(valkey_url, asked, read=Moment(place, snapshot()))
    await told_of_another(things, news, asked)
    assert told_of(news, asked, "early") == set()


async def test_a_document_deleted_before_the_snapshot_and_made_again_after_it_is_told_once(
    nodes: RunningGrid, news: Log, things: MadeCollection, valkey_url: str
) -> None:
    asked = query(things)
    place = await positions(valkey_url)
    await write(things, "PUT", "again", {"n": 7})
    await write(things, "DELETE", "again")
    read = Moment(place, snapshot())
    await write(things, "PUT", "again", {"n": 8})
    await register(valkey_url, asked, read=read)
    await told_of_another(things, news, asked)
    assert told_of(news, asked, "again") == {3}


async def test_a_write_between_the_snapshot_and_the_registration_is_told(
    nodes: RunningGrid, news: Log, things: MadeCollection, valkey_url: str
) -> None:
    asked, other = query(things), query(things)
    read = Moment(await positions(valkey_url), snapshot())
    # Whoever watches already has been told, so that the nodes have it behind them.
    await watched(valkey_url, other, news)
    await write(things, "PUT", "between", {"n": 7})
    await until(lambda: told_of(news, other, "between") == {1}, "the nodes to have seen it")
    await register(valkey_url, asked, read=read)
    await until(lambda: told_of(news, asked, "between") == {1}, "the write to be replayed")


async def test_who_asks_for_an_active_query_changes_nothing_for_those_who_did_before(
    nodes: RunningGrid, news: Log, things: MadeCollection, valkey_url: str
) -> None:
    asked = await watched(valkey_url, query(things), news)
    await insert(things, *range(5, 15))
    await until(lambda: len(news.of("match", asked.hash)) >= 10, "the first matches")
    first = {one.activation for one in news.of("active", asked.hash)}
    await register(valkey_url, asked, hub="second")
    await insert(things, *range(5, 15))
    await until(lambda: len(news.of("match", asked.hash)) >= 20, "the later matches")
    assert {one.activation for one in news.of("active", asked.hash)} == first
    assert news.of("too old", asked.hash) == []


async def test_a_node_that_lost_its_lease_while_it_slept_is_not_heard_of_again(
    nodes: RunningGrid, news: Log, things: MadeCollection, valkey_url: str
) -> None:
    asked = await watched(valkey_url, query(things), news)
    slept = nodes.tasks["filter:0:0"]
    before = newest(news)
    os.kill(slept.pid, signal.SIGSTOP)
    try:
        nodes.start("filter:0:0")
        await until(lambda: newest(news) > before and rebuilt(news), "another holder")
        await told_of_another(things, news, asked)
    finally:
        os.kill(slept.pid, signal.SIGCONT)
    await told_of_another(things, news, asked)
    # It is its turn again: whoever had something to say from before would have said it by now.
    successor = newest(news)
    nodes.tasks["filter:0:0"].stop()
    await until(lambda: newest(news) > successor and rebuilt(news), "the first one to be back")
    await told_of_another(things, news, asked)
    tokens = [one.token for one in news.read() if one.source == "filter:0"]
    assert tokens == sorted(tokens)


def newest(news: Log) -> int:
    return max(one.token for one in news.read() if one.source == "filter:0")


def rebuilt(news: Log) -> bool:
    """Whether the newest holder has told what it knows."""
    return any(one.token == newest(news) for one in news.of("rebased"))
