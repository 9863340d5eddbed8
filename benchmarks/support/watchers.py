"""Very many live queries that survive failures, and know which events they should have received.

Each covers one shard of a collection, into which a writer inserts documents. A subscriber takes its
rows only from `result` and `event` frames; when a connection breaks, it reconnects with its resume
tokens.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import WebSocketException

from benchmarks.support.client import SUBSCRIPTIONS_A_CONNECTION, opened, subscribe
from benchmarks.support.inserts import Inserts

#: Subscriptions of a connection that wait for their result concurrently.
SUBSCRIBING = 32
RETRY_S = 0.1

Frame = dict[str, Any]


@dataclass(slots=True)
class WatchedSubscription:
    """The state of one subscription."""

    number: int
    rows: set[object] = field(default_factory=set)
    #: live, stale, or waiting: for its first answer, or for another one after a reset.
    state: str = "waiting"
    #: Since when it has not been live.
    since_s: float = 0.0
    resume: str = ""


@dataclass(slots=True)
class Tally:
    """What has happened since the last reset."""

    stale: int = 0
    #: The longest interruption of any subscriber that is live again.
    longest_s: float = 0.0
    resets: int = 0
    reconnects: int = 0
    #: Documents that arrived at a subscriber that already had them.
    repeated: int = 0

    def joined(self, later: Tally) -> Tally:
        """Return the sum of both."""
        return Tally(
            self.stale + later.stale,
            max(self.longest_s, later.longest_s),
            self.resets + later.resets,
            self.reconnects + later.reconnects,
            self.repeated + later.repeated,
        )


class Watchers:
    """All subscribers and the writer."""

    def __init__(self, port: int, key: str, collection: str, queries: int) -> None:
        self._port, self._key, self._collection = port, key, collection
        self.watched = [WatchedSubscription(number) for number in range(queries)]
        #: The documents written, by shard.
        self._written: list[set[object]] = [set() for _ in range(queries)]
        self.tally = Tally()
        self.missing = 0
        self._not_live = queries
        self._tasks: list[asyncio.Task[None]] = []
        self._writing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Subscribe all."""
        for first in range(0, len(self.watched), SUBSCRIPTIONS_A_CONNECTION):
            part = self.watched[first : first + SUBSCRIPTIONS_A_CONNECTION]
            self._tasks.append(asyncio.create_task(self._keep(part)))

    async def close(self) -> None:
        tasks = [*self._tasks, *([self._writing] if self._writing else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def whole(self) -> bool:
        """Whether all are live and have all documents."""
        return not self._not_live and not self.missing

    @property
    def stale(self) -> int:
        """The number of subscriptions that are not live."""
        return self._not_live

    def write(self, writes_per_s: float) -> None:
        """Write continuously, each document into a shard that has a watcher."""
        shards = len(self.watched)
        inserts = Inserts(self._port, self._key, self._collection, shards, self._note)
        self._writing = asyncio.create_task(inserts.run(writes_per_s))

    async def stop_writing(self) -> int:
        """Stop writing; return the number of documents written."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
            self._writing = None
        return self.written

    @property
    def written(self) -> int:
        """The number of documents written."""
        return sum(len(shard) for shard in self._written)

    async def _keep(self, part: list[WatchedSubscription]) -> None:
        """Keep one connection's subscriptions, despite failures of the connection."""
        while True:
            with contextlib.suppress(OSError, WebSocketException, TimeoutError):
                connection = await self._open()
                subscribing = asyncio.create_task(self._subscribe(connection, part))
                try:
                    await self._listen(connection, part[0].number)
                finally:
                    subscribing.cancel()
            self.tally.reconnects += 1
            for watched in part:
                self._change(watched, "waiting")
            await asyncio.sleep(RETRY_S)

    async def _open(self) -> ClientConnection:
        return await opened(self._port, self._key)

    async def _subscribe(
        self, connection: ClientConnection, part: list[WatchedSubscription]
    ) -> None:
        for begin in range(0, len(part), SUBSCRIBING):
            several = part[begin : begin + SUBSCRIBING]
            for watched in several:
                condition = {"shard": watched.number}
                name = str(watched.number)
                await connection.send(subscribe(name, self._collection, condition, watched.resume))
            while any(watched.state == "waiting" for watched in several):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def _listen(self, connection: ClientConnection, first: int) -> None:
        async for text in connection:
            frame = json.loads(text)
            if (number := frame.get("id", "")).isdigit() and int(number) >= first:
                self._take(self.watched[int(number)], frame)

    def _take(self, watched: WatchedSubscription, frame: Frame) -> None:
        match frame["type"]:
            case "result":
                if frame["part"] == 0:
                    self.missing += len(watched.rows & self._written[watched.number])
                    watched.rows.clear()
                for item in frame["items"]:
                    self._learn(watched, item["document"]["_id"])
                if frame["last"]:
                    self._change(watched, "live")
            case "event" if frame["match"] == "add":
                self.tally.repeated += frame["key"] in watched.rows
                self._learn(watched, frame["key"])
            case "ready":
                self._change(watched, "live")
            case "status":
                self.tally.stale += frame["state"] == "stale"
                self._change(watched, frame["state"])
            case "reset":
                self.tally.resets += 1
                watched.resume = ""
                self._change(watched, "waiting")
            case "end" | "error":
                raise RuntimeError(f"a subscription ended: {frame}")
            case _:
                pass
        watched.resume = frame.get("resume") or watched.resume

    def _learn(self, watched: WatchedSubscription, key: object) -> None:
        if key in watched.rows:
            return
        watched.rows.add(key)
        if key in self._written[watched.number]:
            self.missing -= 1

    def _change(self, watched: WatchedSubscription, state: str) -> None:
        was, watched.state = watched.state == "live", state
        is_live = state == "live"
        self._not_live += was - is_live
        if was and not is_live:
            watched.since_s = time.monotonic()
        elif is_live and not was:
            waited_s = time.monotonic() - watched.since_s
            self.tally.longest_s = max(self.tally.longest_s, waited_s)

    def _note(self, shard: int, key: str) -> None:
        """Record that a document was written."""
        self._written[shard].add(key)
        if key not in self.watched[shard].rows:
            self.missing += 1
