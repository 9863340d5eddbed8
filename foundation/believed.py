"""What was read a moment ago is believed for a while, and read once for all who ask meanwhile.

A client that begins a thousand subscriptions at once asks a thousand times what its collection
prescribes. Each of them reading it anew whenever it is a second old would take all of the
database's connections from everybody else.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

TTL_S = 1.0

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Believed(Generic[K, V]):
    """Values by key, at most so many; those not read for longest are forgotten first."""

    def __init__(
        self,
        read: Callable[[K, V | None], Awaitable[V]],
        most: int,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take what reads a value, given the one that was believed last, if there is one."""
        self._read = read
        self._most = most
        self._monotonic_s = monotonic_s
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()
        #: What is being read, by event loop: a task of one cannot be awaited in another.
        self._reading: dict[tuple[asyncio.AbstractEventLoop, K], asyncio.Task[V]] = {}

    async def get(self, key: K, *, fresh: bool = False) -> V:
        """Return a value that is at most `TTL_S` old; `fresh`: that is read from now on.

        Raises what reading raises. That is not remembered, but all who waited are told.
        """
        if fresh:
            return await self._read_now(key)
        entry = self._entries.get(key)
        if entry is not None and entry[0] > self._monotonic_s():
            return entry[1]
        # Whoever waits may go away, and the others still want to know.
        return await asyncio.shield(self._under_way(key))

    def _under_way(self, key: K) -> asyncio.Task[V]:
        place = (asyncio.get_running_loop(), key)
        task = self._reading.get(place)
        if task is None:
            task = self._reading[place] = asyncio.create_task(self._read_now(key))
            task.add_done_callback(lambda done: self._done(place, done))
        return task

    def _done(self, place: tuple[asyncio.AbstractEventLoop, K], task: asyncio.Task[V]) -> None:
        del self._reading[place]
        if not task.cancelled():
            # All who waited may have gone, and then nobody else would look at it.
            task.exception()

    async def _read_now(self, key: K) -> V:
        until_s = self._monotonic_s() + TTL_S
        entry = self._entries.get(key)
        found = await self._read(key, entry[1] if entry is not None else None)
        entry = self._entries.get(key)
        if entry is None or entry[0] <= until_s:
            # Otherwise a reading that began later was faster.
            self._entries[key] = (until_s, found)
            self._entries.move_to_end(key)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)
        return found
