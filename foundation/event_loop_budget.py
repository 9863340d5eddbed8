"""Long work on an event loop yields after half a millisecond, so that other tasks can run.

A request takes several iterations of the loop, and each iteration lasts as long as all of its tasks
together. Work whose size the caller decides (a burst of a thousand messages, a hundred queries to
register) therefore yields as soon as it has spent its budget.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

#: With several such tasks at work, an iteration of the loop still takes a few milliseconds at most.
BUDGET_S = 0.000_5


class EventLoopBudget:
    """The time that one piece of work may hold the loop before it yields."""

    def __init__(self, monotonic_s: Callable[[], float] = time.perf_counter) -> None:
        self._monotonic_s = monotonic_s
        self._deadline_s = monotonic_s() + BUDGET_S

    @property
    def is_spent(self) -> bool:
        """Whether the work should yield now."""
        return self._monotonic_s() >= self._deadline_s

    def reset(self) -> None:
        """Start a new budget: the work has just waited for something, so others could run."""
        self._deadline_s = self._monotonic_s() + BUDGET_S

    async def yield_if_spent(self) -> None:
        """Yield to the loop if the budget is spent, and start a new budget."""
        if self.is_spent:
            await asyncio.sleep(0)
            self.reset()
