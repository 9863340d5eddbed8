"""Frames on their way to one client.

Whoever sends is never held up: frames wait here, and those of subscriptions are told when they
have left, so that what makes them can stop making more. A client that does not read fills its
connection, and then this queue up to what its subscriptions may have on the way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

#: After so many frames others get their turn, however fast the client takes them.
AT_ONCE = 64

Sent = Callable[[int], None]


class Outgoing:
    """The queue of one connection, emptied by `run`."""

    def __init__(self, deliver: Callable[[bytes], Awaitable[None]]) -> None:
        self._deliver = deliver
        self._queue: deque[tuple[bytes, Sent | None]] = deque()
        self._wake = asyncio.Event()
        self._ending = False

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, frame: bytes, sent: Sent | None = None) -> None:
        """Send a frame behind those that wait; `sent` is told its size once it has left."""
        self._queue.append((frame, sent))
        self._wake.set()

    def finish(self) -> None:
        """Let `run` end when everything has been sent."""
        self._ending = True
        self._wake.set()

    async def run(self) -> None:
        """Send until `finish`, or until the client is gone."""
        while True:
            await self._empty()
            if self._ending:
                return
            self._wake.clear()
            if not self._queue:
                await self._wake.wait()

    async def _empty(self) -> None:
        count = 0
        while self._queue:
            frame, sent = self._queue.popleft()
            await self._deliver(frame)
            if sent is not None:
                sent(len(frame))
            count += 1
            if count % AT_ONCE == 0:
                await asyncio.sleep(0)
