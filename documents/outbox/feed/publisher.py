"""What the feed reads and appends, in which order. A simulator runs it, too.

Changes become visible in the order of the log. A tick therefore names a single position, up to
which all changes have been appended. Unlike the outbox, the log needs no marks, and is read once.

Each tick stores its position beside the streams. The next feed continues after it, in the same
incarnation, if neither server has lost data since. Otherwise positions may be reused, and a new
incarnation begins with empty streams: readers discard what they have and read the documents again.

The first position of a new incarnation is read before the streams are replaced. A reader notes the
end of the new streams before it reads documents, so it reads them at that position or later.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from documents.outbox.entries import INCARNATION_BYTES
from documents.outbox.events import (
    AppendResult,
    AppendVerdict,
    EntryGroup,
    EventLayerStatus,
    PackedGroup,
)

#: While there are no writes, the node is read, and a tick is sent, at this interval.
IDLE_MS = 200
#: The time between ticks while there are writes, in microseconds.
TICK_US = 200_000
#: Readers treat a tick as current, so an older position is not ticked.
MAX_BEHIND_MS = 2_000
#: Grid nodes ignore changes that they have read as documents, but not forever
#: (docs/protocol.md): a feed that has older changes begins a new incarnation.
MAX_AGE_MS = 30_000


class FeedInterrupted(Exception):
    """A server is unavailable, or rejected a request: the feed begins again."""


class ChangesTruncated(Exception):
    """The node's log does not have the changes after the position any more, or they are too old."""


@dataclass(frozen=True, slots=True)
class NodeLogStatus:
    """The time since the storage node was opened, and the run before that was closed cleanly."""

    run: str
    #: The newest position.
    sequence: int
    previous_run: str | None
    #: The position at which the run before was closed.
    previous_sequence: int | None


@dataclass(frozen=True, slots=True)
class LogChanges:
    """The next changes, and the position up to which they are all."""

    position: int
    groups: Sequence[EntryGroup | PackedGroup]
    #: The age of the first of them.
    oldest_ms: int = 0
    #: The age of the state at the position; 0: it is the newest.
    behind_ms: int = 0


@dataclass(frozen=True, slots=True)
class FeedCursor:
    """Where a feed continues, and what that relies on."""

    incarnation: bytes
    #: The servers, each since it was started; the random value of the streams.
    node_run: str
    event_run: str
    random: str
    position: int

    @classmethod
    def parse(cls, text: str) -> FeedCursor | None:
        """Parse a stored cursor; None: there is none of this form."""
        try:
            incarnation, node_run, event_run, random, position = text.split(" ")
            return cls(bytes.fromhex(incarnation), node_run, event_run, random, int(position))
        except ValueError:
            return None

    def __str__(self) -> str:
        servers = f"{self.node_run} {self.event_run} {self.random}"
        return f"{self.incarnation.hex()} {servers} {self.position}"

    def is_valid(self, node: NodeLogStatus, status: EventLayerStatus) -> bool:
        """Return whether the streams have all changes up to the position, and no position up to it
        has been assigned again.
        """
        if (self.event_run, self.random) != (status.run_id, status.random):
            return False
        if self.node_run == node.run:
            return self.position <= node.sequence
        # A node that was restored from an earlier state follows another run, or an earlier end.
        closed_at = node.previous_sequence
        return (
            self.node_run == node.previous_run
            and closed_at is not None
            and self.position <= closed_at
        )


class FeedServers(Protocol):
    """The storage node and the event layer. Every method may raise `FeedInterrupted`."""

    async def log_status(self) -> NodeLogStatus:
        """Return the node's run and its newest position."""

    async def changes(self, after: int, released: int, wait_ms: int) -> LogChanges:
        """Return the next changes, or wait for some; the log may drop those up to `released`. Raise
        `ChangesTruncated` if it does not have them any more.
        """

    async def event_status(self) -> EventLayerStatus:
        """Return the state of the streams."""

    async def install(self, replaced: str | None) -> AppendResult:
        """Update the grid epochs of the streams. With `replaced`, create empty streams in place of
        those with this random value, or of none if it is empty.
        """

    async def append(
        self, stamp_us: int, groups: Sequence[EntryGroup | PackedGroup]
    ) -> AppendResult:
        """Append groups of after-images."""

    async def tick(
        self, stamp_us: int, status: EventLayerStatus, cursor: FeedCursor
    ) -> AppendResult:
        """Append a tick to every stream, and store the cursor."""


class FeedPublisher:
    """Publishes the changes of one storage node."""

    def __init__(
        self,
        servers: FeedServers,
        epochs: str,
        new_incarnation: Callable[[], bytes] = lambda: secrets.token_bytes(INCARNATION_BYTES),
    ) -> None:
        self._servers = servers
        self._epochs = epochs
        self._new_incarnation = new_incarnation

    async def run(self, should_continue: Callable[[], bool]) -> None:
        """Publish while `should_continue` returns true. Raises `FeedInterrupted` on failures."""
        status, cursor = await self._begin(is_truncated=False)
        while should_continue():
            try:
                await self._publish(status, cursor, should_continue)
            except ChangesTruncated:
                status, cursor = await self._begin(is_truncated=True)

    async def _begin(self, *, is_truncated: bool) -> tuple[EventLayerStatus, FeedCursor]:
        """Return the state of the streams, and where to continue."""
        # Before the streams are created: later readers of documents see at least this.
        node = await self._servers.log_status()
        status = await self._servers.event_status()
        cursor = FeedCursor.parse(status.cursor)
        if cursor is not None and cursor.is_valid(node, status) and not is_truncated:
            if status.epochs != self._epochs:
                _require_ok(await self._servers.install(None))
            position, incarnation = cursor.position, cursor.incarnation
        else:
            _require_ok(await self._servers.install(status.random))
            position, incarnation = node.sequence, self._new_incarnation()
        status = await self._servers.event_status()
        if not status.random:
            raise FeedInterrupted("the event layer was emptied")
        return status, FeedCursor(incarnation, node.run, status.run_id, status.random, position)

    async def _publish(
        self,
        status: EventLayerStatus,
        cursor: FeedCursor,
        should_continue: Callable[[], bool],
    ) -> None:
        # The stamp is taken before the changes are read, so a pause shows.
        position = released = cursor.position
        stamp_us, ticked_us = status.time_us, 0
        while should_continue():
            changes = await self._servers.changes(position, released, IDLE_MS)
            if changes.oldest_ms > MAX_AGE_MS:
                raise ChangesTruncated
            position, now_us = changes.position, stamp_us
            if changes.groups:
                appended = _require_ok(await self._servers.append(stamp_us, changes.groups))
                now_us = appended.time_us
            is_due = not changes.groups or now_us - ticked_us >= TICK_US
            if is_due and changes.behind_ms <= MAX_BEHIND_MS:
                cursor = replace(cursor, position=position)
                ticked = _require_ok(await self._servers.tick(stamp_us, status, cursor))
                now_us = ticked_us = ticked.time_us
                released = position
            stamp_us = now_us


def _require_ok(result: AppendResult) -> AppendResult:
    if result.verdict is not AppendVerdict.OK:
        raise FeedInterrupted(f"the event layer rejected the feed: {result.verdict.value}")
    return result
