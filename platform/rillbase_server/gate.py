"""Limits the number of concurrent requests of a process.

Threads of one interpreter take turns, and switching has a cost: with eight callers, four concurrent
requests have some 15 % more throughput than eight, which mostly wait for each other. But a request
that waits for a slow query must not block the others. So the gate only delays: a request that has
waited `max_wait_s` is admitted regardless, so slow queries soon use all threads of the process.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Gate:
    """Admits `width` requests at a time, and any that waited `max_wait_s`. For one event loop."""

    def __init__(self, width: int, max_wait_s: float) -> None:
        self._width = width
        self._max_wait_s = max_wait_s
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        """Wait until admitted. Each `enter` requires a `leave`."""
        if self._inside < self._width:
            self._inside += 1
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        timer = loop.call_later(self._max_wait_s, self._admit, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise
        finally:
            timer.cancel()

    def leave(self) -> None:
        """Release the slot, and admit the next waiter."""
        self._inside -= 1
        while self._waiting and self._inside < self._width:
            self._admit(self._waiting.popleft())

    def _admit(self, turn: asyncio.Future[None]) -> None:
        if not turn.done():
            self._inside += 1
            turn.set_result(None)
