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
        previous, own = self._last.get(key), asyncio.Event()
        self._last[key] = own
        try:
            if previous is not None:
                await previous.wait()
            yield
        finally:
            own.set()
            if self._last.get(key) is own:
                del self._last[key]
