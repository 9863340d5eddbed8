"""Shares an event loop among sources: light ones never wait for a flooded one.

The CPU time spent on each source is metered. A source that exceeds its share has a debt, and is
*heavy* until some time after the debt is paid. While a light source has work, heavy ones pause
until their debts are paid, and take smaller turns. If all are heavy, none pauses: they take turns.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import TypeVar
from uuid import UUID

from foundation.bulk_budget import BulkBudget
from foundation.contention import WINDOW_S, Contention

T = TypeVar("T")

#: Share of the loop for all heavy sources together while a light one has work.
HEAVY_SHARE = 0.2
#: How long a source stays heavy after paying its debt.
HEAVY_S = 1.0
#: Changes, or rows of a copy, per turn of a heavy source while a light one has work.
CONTENDED_ROWS = 50


class FairShare:
    """The shares of one event loop."""

    def __init__(
        self,
        monotonic_s: Callable[[], float] = time.monotonic,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._monotonic_s = monotonic_s
        contention = Contention(monotonic_s)
        self._budget = BulkBudget(
            contention, monotonic_s, cpu_s, of_one=HEAVY_SHARE, of_all=HEAVY_SHARE
        )
        #: When each source last had a turn without debts, oldest first.
        self._light_s: OrderedDict[UUID, float] = OrderedDict()
        #: The time until which each source is heavy.
        self._heavy_s: dict[UUID, float] = {}

    async def turn(self, source: UUID) -> None:
        """Wait until a source may continue."""
        while pause_s := self.pause_s(source):  # noqa: ASYNC110 -- debts end by the clock
            await asyncio.sleep(pause_s)

    def pause_s(self, source: UUID) -> float:
        """Return how long a source with work has to wait now."""
        now_s, debt_s = self._monotonic_s(), self._budget.debt_s(source)
        if debt_s:
            self._heavy_s[source] = now_s + HEAVY_S
            self._light_s.pop(source, None)
        elif self._heavy_s.get(source, 0.0) <= now_s:
            self._heavy_s.pop(source, None)
            self._light_s[source] = now_s
            self._light_s.move_to_end(source)
        return debt_s if self._is_contended(source) else 0.0

    def rows(self, source: UUID, usual: int) -> int:
        """Return how many changes a turn may take now, given the usual number."""
        return min(usual, CONTENDED_ROWS) if self._is_contended(source) else usual

    async def metered(self, source: UUID, work: Coroutine[object, None, T]) -> T:
        """Run `work`, and charge its CPU time to the source."""
        return await self._budget.metered(source, work)

    def charge(self, source: UUID, spent_s: float) -> None:
        """Charge CPU time on another thread to a source."""
        self._budget.charge(source, spent_s)

    def _is_contended(self, source: UUID) -> bool:
        """Return whether another source recently had work and no debts."""
        oldest_s = self._monotonic_s() - WINDOW_S
        while self._light_s and next(iter(self._light_s.values())) < oldest_s:
            self._light_s.popitem(last=False)
        return len(self._light_s) > (source in self._light_s)


#: The instance of this process's event loop.
sources = FairShare()
