"""Watches in the storage node, over one connection for each tenant that watches here.

After a break the connection is made again and every watch with it, from the position that it had
reached: the node says whether anything has changed since, and answers anew if so.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import Protocol, cast
from uuid import UUID
from weakref import WeakKeyDictionary

from aggregates.facts import AggregateFacts
from aggregates.node import NO_AGGREGATE
from foundation.json_types import JsonObject
from foundation.resp_pipeline import Argument
from storage_engine.node.client import ANSWER_TIMEOUT_S, opened
from storage_engine.node.wire import NodeAway, Refused, Reply, Wire

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
#: How often a silent connection is tried.
PING_S = 5.0
CHANGES, END = b"rb.agg", b"rb.agg.end"

Rows = list[JsonObject]


@dataclass(frozen=True, slots=True)
class Answer:
    """The first answer of a watch. No rows: nothing has changed since the position asked for."""

    position: int
    rows: Rows | None


class Watcher(Protocol):
    """Who is told."""

    def answered(self, answer: Answer) -> None:
        """Learn that whatever comes from now on is told."""

    def changed(self, position: int, rows: Rows, removed: Rows) -> None:
        """Learn of rows that have changed or gone."""

    def stale(self) -> None:
        """Learn that the node is away. `answered` follows."""

    def refused(self, refused: Refused) -> None:
        """Learn that nothing more will come."""


@dataclass(slots=True, eq=False)
class Watching:
    """One watch of one watcher."""

    feed: Feed
    aggregate: AggregateFacts
    query: bytes
    watcher: Watcher
    #: From where it is asked for again; None: from nothing.
    position: int | None
    #: The node's number; None: not known at the moment.
    number: int | None = None

    def close(self) -> None:
        """Be told nothing more."""
        self.feed.leave(self)


class Feed:
    """What one tenant watches in this process."""

    def __init__(self, tenant_id: UUID) -> None:
        self._tenant_id = tenant_id
        self._watching: dict[Watching, None] = {}
        self._by_number: dict[int, Watching] = {}
        self._wire: Wire | None = None
        self._over = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @property
    def is_idle(self) -> bool:
        return not self._watching

    def watch(
        self, aggregate: AggregateFacts, query: bytes, position: int | None, watcher: Watcher
    ) -> Watching:
        """Begin to watch."""
        watching = Watching(self, aggregate, query, watcher, position)
        self._watching[watching] = None
        if self._wire is not None:
            self._ask(watching)
        return watching

    def leave(self, watching: Watching) -> None:
        self._watching.pop(watching, None)
        if watching.number is not None and self._by_number.pop(watching.number, None) is not None:
            self._tell("RB.AGG.UNWATCH", watching.number)

    async def aclose(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _ask(self, watching: Watching) -> None:
        if self._wire is None:
            return
        command: list[Argument] = [
            "RB.AGG.WATCH",
            watching.aggregate.node_name,
            watching.query,
        ]
        if watching.position is not None:
            command += ["FROM", watching.position]
        asked = self._wire.call(*command)
        # In the same turn as the reply, so before any push that follows it.
        asked.add_done_callback(lambda reply: self._answered(watching, reply))

    def _answered(self, watching: Watching, reply: asyncio.Future[Reply]) -> None:
        if reply.cancelled() or watching not in self._watching:
            return
        failed = reply.exception()
        if isinstance(failed, Refused):
            self._refused(watching, failed)
        elif failed is None:
            number, answer = _read(reply.result())
            watching.number, watching.position = number, answer.position
            self._by_number[number] = watching
            watching.watcher.answered(answer)

    def _refused(self, watching: Watching, refused: Refused) -> None:
        if refused.code == NO_AGGREGATE and not watching.aggregate.is_view and self._wire:
            # The node has not heard of it yet.
            aggregate = watching.aggregate
            self._tell("RB.AGG.DEFINE", aggregate.node_name, aggregate.definition)
            self._ask(watching)
            return
        self._watching.pop(watching, None)
        watching.watcher.refused(refused)

    async def _run(self) -> None:
        """Keep a connection until cancelled."""
        pause_s = FIRST_PAUSE_S
        try:
            while True:
                try:
                    await self._connect()
                    pause_s = FIRST_PAUSE_S
                    await self._until_closed()
                except (NodeAway, Refused):
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                self._lost()
                await asyncio.sleep(pause_s)
        finally:
            if self._wire is not None:
                self._wire.close()

    async def _connect(self) -> None:
        self._over = over = asyncio.Event()
        self._wire = await opened(
            self._tenant_id,
            lambda: Wire(
                answer_timeout_s=ANSWER_TIMEOUT_S, on_push=self._pushed, on_close=over.set
            ),
        )
        over.clear()
        if self._wire.closed:
            over.set()
        for watching in list(self._watching):
            self._ask(watching)

    async def _until_closed(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PING_S):
                    await self._over.wait()
            self._tell("PING")

    def _lost(self) -> None:
        self._wire = None
        self._by_number.clear()
        for watching in list(self._watching):
            if watching.number is not None:
                watching.number = None
                watching.watcher.stale()

    def _pushed(self, push: list[Reply]) -> None:
        match push:
            case [kind, int(number), int(position), bytes(rows), bytes(removed)] if kind == CHANGES:
                watching = self._by_number.get(number)
                if watching is not None:
                    watching.position = position
                    watching.watcher.changed(position, _rows(rows), _rows(removed))
            case [kind, int(number), bytes(reason)] if kind == END:
                watching = self._by_number.pop(number, None)
                if watching is not None:
                    self._watching.pop(watching, None)
                    watching.watcher.refused(Refused(reason.decode()))

    def _tell(self, *command: Argument) -> None:
        """Send a command whose answer matters to nobody."""
        if self._wire is not None and not self._wire.closed:
            self._wire.call(*command).add_done_callback(
                lambda reply: None if reply.cancelled() else reply.exception() and None
            )


def _read(reply: Reply) -> tuple[int, Answer]:
    found = reply if isinstance(reply, dict) else {}
    number, position, rows = (found.get(name) for name in (b"watch", b"position", b"rows"))
    if not isinstance(number, int) or not isinstance(position, int):
        raise TypeError("a watch has a number and a position")
    return number, Answer(position, _rows(rows) if isinstance(rows, bytes) else None)


def _rows(text: bytes) -> Rows:
    return cast("Rows", json.loads(text))


class Feeds:
    """The feeds of one event loop, by tenant."""

    def __init__(self) -> None:
        self._by_tenant: dict[UUID, Feed] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def watch(
        self, aggregate: AggregateFacts, query: bytes, position: int | None, watcher: Watcher
    ) -> Watching:
        """Watch rows, from a position if there is one."""
        tenant_id = aggregate.tenant_id
        self._sweep(tenant_id)
        feed = self._by_tenant.get(tenant_id)
        if feed is None:
            feed = self._by_tenant[tenant_id] = Feed(tenant_id)
        return feed.watch(aggregate, query, position, watcher)

    async def aclose(self) -> None:
        feeds, self._by_tenant = list(self._by_tenant.values()), {}
        await asyncio.gather(*(feed.aclose() for feed in feeds))

    def _sweep(self, but: UUID) -> None:
        """Close the connections of tenants that watch nothing any more."""
        for tenant_id in [t for t, feed in self._by_tenant.items() if feed.is_idle and t != but]:
            closing = asyncio.create_task(self._by_tenant.pop(tenant_id).aclose())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)


_feeds: WeakKeyDictionary[asyncio.AbstractEventLoop, Feeds] = WeakKeyDictionary()


def feeds() -> Feeds:
    """Return the running loop's feeds."""
    loop = asyncio.get_running_loop()
    found = _feeds.get(loop)
    if found is None:
        found = _feeds[loop] = Feeds()
    return found


async def close() -> None:
    """Close the running loop's feeds."""
    found = _feeds.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.aclose()
