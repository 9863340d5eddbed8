"""A live query: the server's answer, the state, and its watchers.

Watchers take the latest answer when they are ready for it: a slow one skips snapshots, and one that
reads changes too slowly gets the whole answer instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rillbase import ejson
from rillbase.connection import ConnectionState, RealtimeConnection
from rillbase.errors import RillbaseError
from rillbase.local.foresight import Foresight
from rillbase.local.pending import LocalWrites
from rillbase.query import Spec
from rillbase.shapes import Document, State
from rillbase.tables import Tabular
from rillbase.view import AnswerView, Change, FramesBroken, Item, difference

MAX_WAITING = 1_000
Read: TypeAlias = Callable[[object], Awaitable[Item | None]]


@dataclass(frozen=True, slots=True)
class Snapshot(Tabular):
    """The current answer, including pending writes."""

    items: Sequence[Item]
    state: State
    #: Whether an answer has arrived.
    has_answer: bool
    #: The error that ended it, if the state is `failed`.
    error: RillbaseError | None = None

    @property
    def documents(self) -> list[Document]:
        """The documents of the answer.

        Example:
            for snapshot in todos.sort("rank").watch():
                print(snapshot.documents[0]["title"])  # Buy milk
                break
        """
        return [item.document for item in self.items]

    @property
    def has_pending_writes(self) -> bool:
        """Whether it includes writes that the server has not confirmed.

        Example:
            for snapshot in todos.watch():
                print(snapshot.has_pending_writes)  # False
                break
        """
        return any(item.is_pending for item in self.items)


@dataclass(frozen=True, slots=True)
class Result(Tabular):
    """The whole answer: at first, and when the reader was too slow for single changes."""

    items: Sequence[Item]
    type: Literal["result"] = "result"

    @property
    def documents(self) -> list[Document]:
        """The documents of the answer.

        Example:
            for event in todos.sort("rank").changes():
                print(event.documents[0]["title"])  # Buy milk
                break
        """
        return [item.document for item in self.items]


class QueryWatcher:
    """One subscription and its watcher."""

    def __init__(
        self,
        query: Document,
        connection: RealtimeConnection,
        read: Read,
        local: tuple[Spec, LocalWrites] | None = None,
    ) -> None:
        """Identify the query, and whether it shows pending writes (`local`)."""
        self._query: Document = ejson.encode(query)
        self._connection = connection
        self._read = read
        self._view = AnswerView()
        self._foresight = local and Foresight(*local, self._view, self._notify_change)
        self._state: State = "connecting"
        self._error: RillbaseError | None = None
        self._is_ready = self._is_stale = self._is_offline = False
        self._wake = asyncio.Event()
        self._waiting: deque[Result | Change] = deque()
        self._follows = False
        self._reading: set[asyncio.Task[None]] = set()

    async def snapshots(self) -> AsyncIterator[Snapshot]:
        """Yield the answer whenever it or the state has changed; raise when the query ends."""
        shown: Snapshot | None = None
        async with self._attached():
            while True:
                self._wake.clear()
                if self._error is not None:
                    raise self._error
                now = Snapshot(self._current_items(), self._state, self._view.has_result)
                if now != shown and (now.has_answer or now.items or now.state != "connecting"):
                    shown = now
                    yield now
                    continue
                await self._wake.wait()

    async def changes(self) -> AsyncIterator[Result | Change]:
        """Yield the answer and then each change of it, none lost or repeated."""
        self._follows = True
        async with self._attached():
            while True:
                self._wake.clear()
                while self._waiting:
                    yield self._waiting.popleft()
                if self._error is not None:
                    raise self._error
                await self._wake.wait()

    @asynccontextmanager
    async def _attached(self) -> AsyncIterator[None]:
        if self._foresight is not None:
            self._foresight.join()
        await self._connection.attach(self)
        try:
            yield
        finally:
            for task in self._reading:
                task.cancel()
            if self._foresight is not None:
                self._foresight.leave()
            await self._connection.detach(self)

    def _current_items(self) -> Sequence[Item]:
        return tuple(self._view.items) if self._foresight is None else self._foresight.shown()

    # Called by the connection

    def message(self) -> Document:
        self._view.interrupted()
        self._is_ready = False
        self._notify_change()
        resume = {} if self._view.resume is None else {"resume": self._view.resume}
        return {**self._query, **resume}

    def connection(self, state: ConnectionState) -> None:
        self._is_ready = self._is_ready and state == "open"
        self._is_offline = state == "offline"
        self._notify_change()

    def failed(self, error: RillbaseError) -> None:
        self._error = error
        self._notify_change()

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
        self._notify_change()

    def _result(self, frame: Document) -> None:
        is_first = not self._view.has_result
        before = self._view.result(frame)
        if before is None:
            return
        if is_first:
            self._notify([Result(tuple(self._view.items))])
        else:
            self._notify(difference(before, self._view.items))
        if self._foresight is not None:
            self._foresight.catch_up()

    def _event(self, frame: Document) -> None:
        try:
            changes = self._view.event(frame)
        except FramesBroken:
            self._view.reset()
            raise
        self._notify(changes)
        if self._foresight is not None:
            self._foresight.apply(changes)
        # Reading a document by id does not include its lookups.
        if frame.get("omitted") is not None and "lookup" not in self._query:
            task = asyncio.create_task(self._complete(frame["key"]))
            self._reading.add(task)
            task.add_done_callback(self._reading.discard)

    async def _complete(self, identity: object) -> None:
        """Fetch a document that was too large to be sent with its change."""
        try:
            item = await self._read(identity)
        except RillbaseError:
            # It stays unchanged; its next change updates it.
            return
        if item is not None and self._view.put(item):
            self._notify([Change("change", item)])
            self._notify_change()

    def _notify(self, events: Sequence[Result | Change]) -> None:
        if not self._follows:
            return
        self._waiting.extend(events)
        if len(self._waiting) > MAX_WAITING:
            self._waiting.clear()
            self._waiting.append(Result(tuple(self._view.items)))

    def _notify_change(self) -> None:
        self._state = self._present_state()
        if self._foresight is not None:
            self._foresight.live(is_live=self._state == "live")
        self._wake.set()

    def _present_state(self) -> State:
        if self._error is not None:
            return "failed"
        if self._is_ready:
            return "stale" if self._is_stale else "live"
        if self._is_offline:
            return "offline"
        return "stale" if self._is_stale and self._view.has_result else "connecting"
