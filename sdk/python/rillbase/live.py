"""A live query: the server's answer, the state, and those who watch.

Watchers take what there is when they are ready for it: whoever is slow skips snapshots, and whoever
follows changes and is too slow for each of them gets the whole answer instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rillbase import ejson
from rillbase.connection import Connection, ConnectionState
from rillbase.errors import RillbaseError
from rillbase.shapes import Document, State
from rillbase.view import Change, FramesBroken, Item, View, difference

MAX_WAITING = 1_000
Read = Callable[[object], Awaitable[Item | None]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The answer as it stands."""

    items: Sequence[Item]
    state: State
    #: Whether there has been an answer at all.
    has_answer: bool

    @property
    def documents(self) -> list[Document]:
        return [item.document for item in self.items]


@dataclass(frozen=True, slots=True)
class Result:
    """The whole answer: first of all, and where the reader was too slow for single changes."""

    items: Sequence[Item]
    type: Literal["result"] = "result"

    @property
    def documents(self) -> list[Document]:
        return [item.document for item in self.items]


class LiveQuery:
    """One subscription and its watcher."""

    def __init__(self, query: Document, connection: Connection, read: Read) -> None:
        self._query = query
        self._connection = connection
        self._read = read
        self._view = View()
        self._state: State = "connecting"
        self._error: RillbaseError | None = None
        self._is_ready = self._is_stale = self._is_offline = False
        self._wake = asyncio.Event()
        self._waiting: deque[Result | Change] = deque()
        self._follows = False
        self._reading: set[asyncio.Task[None]] = set()

    async def snapshots(self) -> AsyncIterator[Snapshot]:
        """Yield the answer whenever it or the state has changed; raise when it is over."""
        shown: Snapshot | None = None
        await self._connection.attach(self)
        try:
            while True:
                self._wake.clear()
                if self._error is not None:
                    raise self._error
                now = Snapshot(tuple(self._view.items), self._state, self._view.has_result)
                if now != shown and (now.has_answer or now.state != "connecting"):
                    shown = now
                    yield now
                    continue
                await self._wake.wait()
        finally:
            await self._leave()

    async def changes(self) -> AsyncIterator[Result | Change]:
        """Yield the answer and then each change of it, nothing lost and nothing twice."""
        self._follows = True
        await self._connection.attach(self)
        try:
            while True:
                self._wake.clear()
                while self._waiting:
                    yield self._waiting.popleft()
                if self._error is not None:
                    raise self._error
                await self._wake.wait()
        finally:
            await self._leave()

    async def _leave(self) -> None:
        for task in self._reading:
            task.cancel()
        await self._connection.detach(self)

    # What the connection tells

    def message(self) -> Document:
        self._view.interrupted()
        self._is_ready = False
        self._changed()
        resume = {} if self._view.resume is None else {"resume": self._view.resume}
        encoded: Document = ejson.encode(self._query)
        return {**encoded, **resume}

    def connection(self, state: ConnectionState) -> None:
        self._is_ready = self._is_ready and state == "open"
        self._is_offline = state == "offline"
        self._changed()

    def failed(self, error: RillbaseError) -> None:
        self._error = error
        self._changed()

    def frame(self, frame: Document) -> None:
        match frame["type"]:
            case "result":
                self._result(frame)
            case "event":
                self._event(frame)
            case "ready":
                self._view.resume = frame.get("resume", self._view.resume)
                self._is_ready, self._is_stale = True, False
            case "reset":
                self._view.reset()
                self._is_ready, self._is_stale = False, True
            case "status":
                self._is_stale = frame["state"] == "stale"
            case _:
                return
        self._changed()

    def _result(self, frame: Document) -> None:
        is_first = not self._view.has_result
        before = self._view.result(frame)
        if before is None:
            return
        if is_first:
            self._tell([Result(tuple(self._view.items))])
        else:
            self._tell(difference(before, self._view.items))

    def _event(self, frame: Document) -> None:
        try:
            changes = self._view.event(frame)
        except FramesBroken:
            self._view.reset()
            raise
        self._tell(changes)
        if frame.get("omitted") is not None:
            task = asyncio.create_task(self._complete(frame["key"]))
            self._reading.add(task)
            task.add_done_callback(self._reading.discard)

    async def _complete(self, identity: object) -> None:
        """Fetch a document that was too large to be sent with its change."""
        try:
            found = await self._read(identity)
        except RillbaseError:
            # It stays as it was; its next change brings it up to date.
            return
        if found is not None and self._view.put(found):
            self._tell([Change("change", found)])
            self._changed()

    def _tell(self, told: Sequence[Result | Change]) -> None:
        if not self._follows:
            return
        self._waiting.extend(told)
        if len(self._waiting) > MAX_WAITING:
            self._waiting.clear()
            self._waiting.append(Result(tuple(self._view.items)))

    def _changed(self) -> None:
        self._state = self._present_state()
        self._wake.set()

    def _present_state(self) -> State:
        if self._error is not None:
            return "failed"
        if self._is_ready:
            return "stale" if self._is_stale else "live"
        if self._is_offline:
            return "offline"
        return "stale" if self._is_stale and self._view.has_result else "connecting"
