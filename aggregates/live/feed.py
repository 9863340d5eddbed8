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
    """The first answer of a watch. No rows: nothing has changed since the requested position."""

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

    def remove(self, watching: FeedWatch) -> None:
        self._watching.pop(watching, None)
        if watching.number is not None and self._by_number.pop(watching.number, None) is not None:
            self._send("RB.AGG.UNWATCH", watching.number)

    def _ask(self, wire: Wire, watching: FeedWatch) -> None:
        command: list[Argument] = [
            "RB.AGG.WATCH",
            watching.aggregate.node_name,
            watching.query,
        ]
        if watching.position is not None:
            command += ["FROM", watching.position]
        pending = wire.call(*command)
        # In the same turn as the reply, so before any push that follows it.
        pending.add_done_callback(lambda reply: self._on_answer(watching, reply))

    def _on_answer(self, watching: FeedWatch, reply: asyncio.Future[Reply]) -> None:
        if reply.cancelled() or watching not in self._watching:
            return
        failed = reply.exception()
        if isinstance(failed, CommandRejected):
            self._on_rejection(watching, failed)
        elif failed is None:
            number, answer = _read(reply.result())
            watching.number, watching.position = number, answer.position
            self._by_number[number] = watching
            watching.watcher.answered(answer)

    def _on_rejection(self, watching: FeedWatch, refused: CommandRejected) -> None:
        if refused.code == NO_AGGREGATE and not watching.aggregate.is_view and self._wire:
            # The node does not know the watch yet.
            aggregate = watching.aggregate
            self._send("RB.AGG.DEFINE", aggregate.node_name, aggregate.definition)
            self._ask(self._wire, watching)
            return
        self._watching.pop(watching, None)
        watching.watcher.refused(refused)

    def _connected(self, wire: Wire) -> None:
        for watching in list(self._watching):
            self._ask(wire, watching)

    def _disconnected(self) -> None:
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
                    watching.watcher.refused(CommandRejected(reason.decode()))


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
