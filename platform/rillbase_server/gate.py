"""Limits the number of concurrent requests of a process.

Threads of one interpreter take turns, and each switch has a cost: measured with eight callers, four
concurrent requests have some 15 % more throughput than eight, which mostly wait for each other. But
a request that waits for a slow query must not block the others. So the gate is narrow but only
delays: a request that has waited `patience_s` is admitted regardless, and with slow queries all
threads of the process are soon in use.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Gate:
    """Admits `width` at a time, and any that waited for `patience_s`. For one event loop."""

    def __init__(self, width: int, patience_s: float) -> None:
        self._width = width
        self._patience_s = patience_s
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        """Return when it is this caller's turn. Who has entered must leave."""
        if self._inside < self._width:
            self._inside += 1
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        timer = loop.call_later(self._patience_s, self._admit, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise
        finally:
            timer.cancel()

    def leave(self) -> None:
        """Make room, and call the next in."""
        self._inside -= 1
        while self._waiting and self._inside < self._width:
            self._admit(self._waiting.popleft())

    def _admit(self, turn: asyncio.Future[None]) -> None:
        if not turn.done():
            self._inside += 1
            turn.set_result(None)
