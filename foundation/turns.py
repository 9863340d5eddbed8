"""Limits concurrent work, in total and per party, so that a busy party only delays itself.

While several parties are active, a party has one slot, its turns wait for the budget of bulk work,
and a slot stays unused after each turn for a multiple of the time that the turn took: that bounds
the load on other servers, whose CPU time cannot be metered here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from foundation.bulk_budget import BulkBudget


class TurnScheduler:
    """Turns of one event loop. Under contention, half of the slots and one per party are used."""

    def __init__(self, at_once: int, of_one: int, budget: BulkBudget, *, rests: float = 0) -> None:
        self._budget = budget
        self._per_party = of_one
        self._rests = rests
        # A long turn of one party must leave a slot for others.
        self._slots = _TurnSlots(self._limit(at_once, min(at_once, max(2, at_once // 2))))
        #: Dropped with the last turn that runs, waits or keeps its slot unused.
        self._own_slots: WeakValueDictionary[Hashable, _TurnSlots] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, party: Hashable) -> AsyncIterator[None]:
        """Wait for a turn and hold it until the block ends."""
        own = self._own_slots.get(party)
        if own is None:
            own = self._own_slots[party] = _TurnSlots(self._limit(self._per_party, 1))
        acquired = list[_TurnSlots]()
        took_s = 0.0
        try:
            await own.take()
            acquired.append(own)
            await self._budget.wait(party)
            await self._slots.take()
            acquired.append(self._slots)
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            self._budget.contention.record(party)
            try:
                yield
            finally:
                took_s = loop.time() - began_s
                # A long turn was not recorded as activity meanwhile.
                self._budget.contention.record(party)
        finally:
            self._free(acquired, took_s)

    def _limit(self, alone: int, shared: int) -> Callable[[], int]:
        return lambda: shared if self._budget.contention.is_contended else alone

    def _free(self, acquired: list[_TurnSlots], took_s: float) -> None:
        rest_s = self._rests * took_s if self._budget.contention.is_contended else 0.0
        for slots in acquired:
            if rest_s > 0:
                asyncio.get_running_loop().call_later(rest_s, slots.free)
            else:
                slots.free()


class _TurnSlots:
    """Slots that are granted in the order of the requests; their number may change.

    A waiter waits for a slot that is taken or not yet reusable, so a change of the limit is
    noticed when that slot is free again.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._in_use = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a slot."""
        if not self._waiting and self._in_use < self._limit():
            self._in_use += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.free()
            raise

    def free(self) -> None:
        """Release a slot."""
        self._in_use -= 1
        while self._waiting and self._in_use < self._limit():
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_use += 1
                turn.set_result(None)
