"""Runs operations on the same object in the order in which they were requested."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class OrderedTurns:
    """Turns by key. Keys without turns take no memory."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: dict[Hashable, asyncio.Event] = {}

    @asynccontextmanager
    async def turn(self, key: Hashable | None) -> AsyncIterator[None]:
        """Wait for earlier turns with the same key; None: do not wait."""
        if key is None:
            yield
            return
        before, mine = self._last.get(key), asyncio.Event()
        self._last[key] = mine
        try:
            if before is not None:
                await before.wait()
            yield
        finally:
            mine.set()
            if self._last.get(key) is mine:
                del self._last[key]
