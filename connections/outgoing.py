"""Frames on their way to one client.

Sending never blocks: frames are queued, and a subscription is notified when one of its frames has
left, which is its backpressure. A client that does not read fills its connection, then this queue
up to the windows of its subscriptions. Replies fill it too, so reading its messages waits for room.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from foundation.event_loop_budget import EventLoopBudget

#: Beyond this nothing more is read from a client until it has received some.
MAX_WAITING_BYTES = 4 * 1024 * 1024

Sent = Callable[[int], None]
Deliver = Callable[[bytes], Awaitable[None]]


class Outgoing:
    """The queue of one connection, emptied by `run`."""

    def __init__(self) -> None:
        self._queue: deque[tuple[bytes, Sent | None]] = deque()
        self._waiting_bytes = 0
        self._wake = asyncio.Event()
        self._taken = asyncio.Event()
        self._ending = False

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, frame: bytes, sent: Sent | None = None) -> None:
        """Queue a frame; `sent` is called with its size once it has left."""
        self._queue.append((frame, sent))
        self._waiting_bytes += len(frame)
        self._wake.set()

    async def room(self) -> None:
        """Wait while too many frames are queued."""
        while self._waiting_bytes > MAX_WAITING_BYTES:
            self._taken.clear()
            await self._taken.wait()

    def finish(self) -> None:
        """Make `run` return when everything has been sent."""
        self._ending = True
        self._wake.set()

    async def run(self, deliver: Deliver) -> None:
        """Send until `finish`, or until the client has disconnected."""
        while True:
            await self._empty(deliver)
            if self._ending:
                return
            self._wake.clear()
            if not self._queue:
                await self._wake.wait()

    async def _empty(self, deliver: Deliver) -> None:
        budget = EventLoopBudget()
        while self._queue:
            frame, sent = self._queue.popleft()
            await deliver(frame)
            self._waiting_bytes -= len(frame)
            self._taken.set()
            if sent is not None:
                sent(len(frame))
            await budget.yield_if_spent()
