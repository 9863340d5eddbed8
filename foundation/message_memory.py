"""The memory that messages or bodies of all connections may take while they are received and read.

A message claims memory in steps, as its bytes arrive, and keeps its claim until the application is
done with it. When all memory is claimed, connections are not read until some is released. Only the
oldest claim may exceed the limit: it can always be completed, so messages that are all incomplete
cannot deadlock.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable


class MemoryClaim:
    """The memory of one message, counted by reference: every holder releases it."""

    __slots__ = ("_holders", "_memory", "n_bytes")

    def __init__(self, memory: MessageMemory) -> None:
        self._memory = memory
        self._holders = 1
        self.n_bytes = 0

    def retain(self) -> None:
        """Keep the claim until one more `release`."""
        self._holders += 1

    def release(self) -> None:
        """Release the memory, unless the claim has other holders."""
        self._holders -= 1
        if self._holders == 0:
            self._memory.release(self)


class MessageMemory:
    """The memory of one event loop's connections."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0
        #: By age: a claim is as old as its first byte.
        self._claims: OrderedDict[MemoryClaim, None] = OrderedDict()
        self._waiting: OrderedDict[MemoryClaim, tuple[int, Callable[[], None]]] = OrderedDict()

    def begin(self) -> MemoryClaim:
        """Return an empty claim."""
        return MemoryClaim(self)

    def extend(self, claim: MemoryClaim, n_bytes: int, resume: Callable[[], None]) -> bool:
        """Extend a claim. If no memory is free, `resume` is called once it has been extended."""
        self._claims.setdefault(claim)
        if (not self._waiting and self._fits(claim, n_bytes)) or self._is_oldest(claim):
            self._grant(claim, n_bytes)
            return True
        self._waiting[claim] = (n_bytes, resume)
        return False

    async def extended(self, claim: MemoryClaim, n_bytes: int) -> None:
        """Return once a claim has been extended."""
        grant: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def resume() -> None:
            if not grant.done():
                grant.set_result(None)

        if not self.extend(claim, n_bytes, resume):
            await grant

    def release(self, claim: MemoryClaim) -> None:
        """Release a claim's memory, and extend the claims that wait."""
        self._claims.pop(claim, None)
        self._waiting.pop(claim, None)
        self.used_bytes -= claim.n_bytes
        claim.n_bytes = 0
        self._serve()

    def _serve(self) -> None:
        for claim, (n_bytes, resume) in list(self._waiting.items()):
            if not self._fits(claim, n_bytes) and not self._is_oldest(claim):
                continue
            if self._waiting.pop(claim, None) is not None:
                self._grant(claim, n_bytes)
                resume()

    def _grant(self, claim: MemoryClaim, n_bytes: int) -> None:
        claim.n_bytes += n_bytes
        self.used_bytes += n_bytes

    def _fits(self, claim: MemoryClaim, n_bytes: int) -> bool:
        return self.used_bytes + n_bytes <= self.max_bytes

    def _is_oldest(self, claim: MemoryClaim) -> bool:
        return next(iter(self._claims)) is claim
