"""Frames on their way to one client.

Sending never blocks: frames leave at once while the connection takes them, and are queued
otherwise. A subscription is notified when one of its frames has left, which is its backpressure. A
client that does not read fills its connection, then this queue up to the windows of its
subscriptions. Replies fill it too, so reading its messages waits for room.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from foundation.event_loop_budget import EventLoopBudget

log = logging.getLogger(__name__)

#: Beyond this nothing more is read from a client until it has received some.
MAX_WAITING_BYTES = 4 * 1024 * 1024

Sent = Callable[[int], None]
Deliver = Callable[[bytes], Awaitable[None]]
#: Delivers a frame without waiting, or returns False.
DeliverAtOnce = Callable[[bytes], bool]


def _ignore() -> None:
    """Do nothing."""


def _never(_: bytes) -> bool:
    return False


class Outgoing:
    """The queue of one connection. A task empties it, which exists only while frames wait."""

    __slots__ = (
        "_deliver",
        "_deliver_at_once",
        "_is_finishing",
        "_is_notifying",
        "_on_client_gone",
        "_queue",
        "_room",
        "_sending",
        "_waiting_bytes",
    )

    def __init__(
        self,
        deliver: Deliver,
        on_client_gone: Callable[[], None],
        deliver_at_once: DeliverAtOnce = _never,
    ) -> None:
        """`on_client_gone` is called when a frame cannot be delivered: the client is gone."""
        #: None: nothing more is sent.
        self._deliver: Deliver | None = deliver
        self._deliver_at_once = deliver_at_once
        #: Whether a subscription is being notified of a frame that was delivered at once.
        self._is_notifying = False
        self._on_client_gone = on_client_gone
        self._is_finishing = False
        self._queue: list[tuple[bytes, Sent | None]] = []
        self._waiting_bytes = 0
        self._sending: asyncio.Task[None] | None = None
        self._room: asyncio.Future[None] | None = None

    @property
    def is_empty(self) -> bool:
        return self._sending is None

    @property
    def is_closed(self) -> bool:
        """Whether the client is gone."""
        return self._deliver is None

    def put(self, frame: bytes, sent: Sent | None = None) -> None:
        """Send or queue a frame; `sent` is called with its size once it has left."""
        if self._deliver is None or self._is_finishing:
            return
        if self._sending is None and not self._is_notifying and self._deliver_at_once(frame):
            self._notify(sent, len(frame))
            return
        self._queue.append((frame, sent))
        self._waiting_bytes += len(frame)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send(self._deliver))

    async def room(self) -> None:
        """Wait while too many frames are queued."""
        while self._waiting_bytes > MAX_WAITING_BYTES:
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    async def finish(self) -> None:
        """Send what is queued and nothing else: live queries would refill the queue."""
        self._is_finishing = True
        if self._sending is not None:
            await self._sending

    async def close(self) -> None:
        """Discard what waits, and what is put from now on."""
        # References in circles would keep the connection in memory.
        self._deliver, self._on_client_gone, self._deliver_at_once = None, _ignore, _never
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        self._queue.clear()

    async def _send(self, deliver: Deliver) -> None:
        try:
            await self._empty(deliver)
        except OSError:
            self._deliver = None
        except Exception:
            log.exception("a frame could not be sent")
            self._deliver = None
        finally:
            self._sending = None
        if self._deliver is None:
            self._on_client_gone()

    async def _empty(self, deliver: Deliver) -> None:
        budget = EventLoopBudget()
        while self._queue:
            batch, self._queue = self._queue[::-1], []
            while batch:
                frame, sent = batch.pop()
                await deliver(frame)
                self._waiting_bytes -= len(frame)
                if self._room is not None:
                    self._make_room(self._room)
                if sent is not None:
                    sent(len(frame))
                if budget.is_spent:
                    await budget.yield_if_spent()

    def _notify(self, sent: Sent | None, size_bytes: int) -> None:
        """Report a frame. Frames that this leads to are queued, lest they lead to more of them."""
        if sent is not None:
            self._is_notifying = True
            try:
                sent(size_bytes)
            finally:
                self._is_notifying = False

    def _make_room(self, room: asyncio.Future[None]) -> None:
        self._room = None
        if not room.done():
            room.set_result(None)
