"""Long work on an event loop, cut so that everybody else gets a turn in between.

Whatever else a loop serves waits for each of its rounds to end, several rounds for one answer. So
work whose length a caller decides (a thousand messages that have come at once, a hundred queries
that are told to the nodes) lets go of the loop as soon as it has had it for a moment.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

#: A round of the loop with several at work still takes no more than a few milliseconds.
SLICE_S = 0.000_5


class Slices:
    """The turns of one piece of work."""

    def __init__(self, monotonic_s: Callable[[], float] = time.perf_counter) -> None:
        self._monotonic_s = monotonic_s
        self._until_s = monotonic_s() + SLICE_S

    @property
    def is_over(self) -> bool:
        """Whether others should have their turn now."""
        return self._monotonic_s() >= self._until_s

    def begin(self) -> None:
        """Count from here on: the work has been waiting for something, and others had turns."""
        self._until_s = self._monotonic_s() + SLICE_S

    async def breathe(self) -> None:
        """Let others have their turn, if this one has been long enough."""
        if self.is_over:
            await asyncio.sleep(0)
            self.begin()
