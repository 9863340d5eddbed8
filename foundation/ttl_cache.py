"""A cache whose values live for a second and are read once for all concurrent callers.

A client that starts a thousand subscriptions at once looks up the definition of its collection a
thousand times. If each of them read it again whenever it expires, they would use up the database
connections that other requests need.
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


class TtlCache(Generic[K, V]):
    """Values by key, with single-flight reads. Evicts the least recently read beyond `capacity`."""

    def __init__(
        self,
        read: Callable[[K, V | None], Awaitable[V]],
        capacity: int,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`read` gets the key and the last cached value, if there is one."""
        self._read = read
        self._capacity = capacity
        self._monotonic_s = monotonic_s
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()
        #: Reads in flight by event loop: a task of one loop cannot be awaited in another.
        self._in_flight: dict[tuple[asyncio.AbstractEventLoop, K], asyncio.Task[V]] = {}

    async def get(self, key: K, *, fresh: bool = False) -> V:
        """Return a value at most `TTL_S` old, or with `fresh` one whose read starts now.

        An exception of the read is raised to all who wait for it, and is not cached.
        """
        if fresh:
            return await self._read_now(key)
        entry = self._entries.get(key)
        if entry is not None and entry[0] > self._monotonic_s():
            return entry[1]
        # A caller may be cancelled while others still wait for the same read.
        return await asyncio.shield(self._shared_read(key))

    def _shared_read(self, key: K) -> asyncio.Task[V]:
        slot = (asyncio.get_running_loop(), key)
        task = self._in_flight.get(slot)
        if task is None:
            task = self._in_flight[slot] = asyncio.create_task(self._read_now(key))
            task.add_done_callback(lambda done: self._remove(slot, done))
        return task

    def _remove(self, slot: tuple[asyncio.AbstractEventLoop, K], task: asyncio.Task[V]) -> None:
        del self._in_flight[slot]
        if not task.cancelled():
            # Marks the exception as retrieved, even if every caller was cancelled.
            task.exception()

    async def _read_now(self, key: K) -> V:
        expires_s = self._monotonic_s() + TTL_S
        entry = self._entries.get(key)
        value = await self._read(key, entry[1] if entry is not None else None)
        entry = self._entries.get(key)
        if entry is None or entry[0] <= expires_s:
            # Otherwise a read that started later has already finished.
            self._entries[key] = (expires_s, value)
            self._entries.move_to_end(key)
        while len(self._entries) > self._capacity:
            self._entries.popitem(last=False)
        return value
