"""So many at once, of whom nobody has more than a share: whoever asks for very much waits for
itself, and everybody else finds room. In company its places rest after each turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from foundation.company import Company

#: A place rests so many times as long as its turn took.
RESTS = 3.0


class Turns:
    """Turns of one event loop."""

    def __init__(self, at_once: int, of_one: int, company: Company) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._of_one = of_one
        self._company = company
        #: Forgotten with the last who has a turn, waits for one or rests.
        self._rooms: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, whose: Hashable) -> AsyncIterator[None]:
        """Wait for a turn and have it until the block ends."""
        own = self._rooms.get(whose)
        if own is None:
            own = self._rooms[whose] = asyncio.Semaphore(self._of_one)
        await own.acquire()
        took_s = 0.0
        try:
            async with self._room:
                loop = asyncio.get_running_loop()
                began_s = loop.time()
                try:
                    yield
                finally:
                    took_s = loop.time() - began_s
        finally:
            self._free(own, took_s)

    def _free(self, own: asyncio.Semaphore, took_s: float) -> None:
        if self._company.is_shared:
            asyncio.get_running_loop().call_later(RESTS * took_s, own.release)
        else:
            own.release()
