"""Watches in the storage node, over one connection for each tenant with watches in this process.

After a disconnect, the connection and all its watches are re-established from the positions that
they had reached: the node reports whether anything has changed since, and sends a new answer if so.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Protocol, cast
from uuid import UUID

from aggregates.facts import AggregateFacts
from aggregates.node import NO_AGGREGATE
from foundation.json_types import JsonObject
from foundation.resp_pipeline import Argument
from storage_engine.node.tenant_feed import LoopFeeds, TenantFeed
from storage_engine.node.wire import CommandRejected, Reply, Wire

CHANGES, END = b"rb.agg", b"rb.agg.end"

JsonRows = list[JsonObject]


@dataclass(frozen=True, slots=True)
class InitialAnswer:
    """The first answer of a watch. No rows: nothing has changed since the position asked for."""

    position: int
    rows: JsonRows | None


class Watcher(Protocol):
    """The receiver of a watch's notifications."""

    def answered(self, answer: InitialAnswer) -> None:
        """Handle the first answer; notifications follow."""

    def changed(self, position: int, rows: JsonRows, removed: JsonRows) -> None:
        """Handle rows that have changed or been removed."""

    def stale(self) -> None:
        """Handle the loss of the node. `answered` follows."""

    def refused(self, refused: CommandRejected) -> None:
        """Handle the rejection of the watch; nothing follows."""


@dataclass(slots=True, eq=False)
class FeedWatch:
    """One watch of one watcher."""

    feed: AggregateFeed
    aggregate: AggregateFacts
    query: bytes
    watcher: Watcher
    #: The position to resume from; None: from the beginning.
    position: int | None
    #: The node's number for the watch; None: not known at the moment.
    number: int | None = None

    def close(self) -> None:
        """Stop all notifications."""
        self.feed.remove(self)


class AggregateFeed(TenantFeed):
    """The watches of one tenant in this process."""

    def __init__(self, tenant_id: UUID) -> None:
        self._watching: dict[FeedWatch, None] = {}
        self._by_number: dict[int, FeedWatch] = {}
        super().__init__(tenant_id)

    @property
    def is_idle(self) -> bool:
        return not self._watching

    def watch(
        self, aggregate: AggregateFacts, query: bytes, position: int | None, watcher: Watcher
    ) -> FeedWatch:
        """Start a watch."""
        watching = FeedWatch(self, aggregate, query, watcher, position)
        self._watching[watching] = None
        if self._wire is not None:
            self._ask(self._wire, watching)
        return watching

    def remove(self, watch: FeedWatch) -> None:
        self._watching.pop(watch, None)
        if watch.number is not None and self._by_number.pop(watch.number, None) is not None:
            self._send("RB.AGG.UNWATCH", watch.number)

    def _ask(self, wire: Wire, watch: FeedWatch) -> None:
        command: list[Argument] = [
            "RB.AGG.WATCH",
            watch.aggregate.node_name,
            watch.query,
        ]
        if watch.position is not None:
            command += ["FROM", watch.position]
        pending = wire.call(*command)
        # In the same turn as the reply, so before any push that follows it.
        pending.add_done_callback(lambda reply: self._answered(watch, reply))

    def _answered(self, watch: FeedWatch, reply: asyncio.Future[Reply]) -> None:
        if reply.cancelled() or watch not in self._watching:
            return
        error = reply.exception()
        if isinstance(error, CommandRejected):
            self._refused(watch, error)
        elif error is None:
            number, answer = _read(reply.result())
            watch.number, watch.position = number, answer.position
            self._by_number[number] = watch
            watch.watcher.answered(answer)

    def _refused(self, watch: FeedWatch, error: CommandRejected) -> None:
        if error.code == NO_AGGREGATE and not watch.aggregate.is_view and self._wire:
            # The node does not know the watch yet.
            aggregate = watch.aggregate
            self._send("RB.AGG.DEFINE", aggregate.node_name, aggregate.definition)
            self._ask(self._wire, watch)
            return
        self._watching.pop(watch, None)
        watch.watcher.refused(error)

    def _connected(self, wire: Wire) -> None:
        for watch in list(self._watching):
            self._ask(wire, watch)

    def _lost(self) -> None:
        self._by_number.clear()
        for watch in list(self._watching):
            if watch.number is not None:
                watch.number = None
                watch.watcher.stale()

    def _pushed(self, push: list[Reply]) -> None:
        match push:
            case [kind, int(number), int(position), bytes(rows), bytes(removed)] if kind == CHANGES:
                watch = self._by_number.get(number)
                if watch is not None:
                    watch.position = position
                    watch.watcher.changed(position, _rows(rows), _rows(removed))
            case [kind, int(number), bytes(reason)] if kind == END:
                watch = self._by_number.pop(number, None)
                if watch is not None:
                    self._watching.pop(watch, None)
                    watch.watcher.refused(CommandRejected(reason.decode()))


def _read(reply: Reply) -> tuple[int, InitialAnswer]:
    members = reply if isinstance(reply, dict) else {}
    number, position, rows = (members.get(name) for name in (b"watch", b"position", b"rows"))
    if not isinstance(number, int) or not isinstance(position, int):
        raise TypeError("a watch has a number and a position")
    return number, InitialAnswer(position, _rows(rows) if isinstance(rows, bytes) else None)


def _rows(text: bytes) -> JsonRows:
    return cast("JsonRows", json.loads(text))


#: The feeds of this process, by event loop and tenant.
feeds = LoopFeeds(AggregateFeed)
