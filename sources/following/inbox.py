"""What has been read and not yet been applied: bounded in bytes, so that a server that tells more
than can be applied is not read for a while.
"""

from __future__ import annotations

import asyncio
from collections import deque

from sources.following.transactions import Transaction

MAX_BYTES = 32 * 1024 * 1024
#: Changes that are applied together: subscribers see them as one group, and what comes meanwhile
#: waits for them.
MAX_CHANGES = 500


class Inbox:
    """Between the task that reads and the task that applies."""

    def __init__(self) -> None:
        self._waiting: deque[Transaction] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def oldest(self) -> Transaction | None:
        """What has waited longest."""
        return self._waiting[0] if self._waiting else None

    async def put(self, transaction: Transaction) -> None:
        """Add a transaction, as soon as there is room for it."""
        while self._bytes > MAX_BYTES:
            self._changed.clear()
            await self._changed.wait()
        self._waiting.append(transaction)
        self._bytes += _held(transaction)
        self._changed.set()

    async def wait(self, timeout_s: float) -> bool:
        """Return as soon as something waits, or the time is over. Tell whether something does."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._waiting:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def first(self, max_changes: int = MAX_CHANGES) -> list[Transaction]:
        """Return what is applied together next: small transactions in their order, so that few
        commits keep up with many, or one that is alone. They stay until they are `taken`.
        """
        group: list[Transaction] = []
        changes = 0
        for transaction in self._waiting:
            alone = transaction.copy_reason or not transaction.is_whole
            changes += transaction.count
            if group and (alone or changes > max_changes):
                break
            group.append(transaction)
            if alone:
                break
        return group

    def taken(self, count: int) -> None:
        """Forget the first ones, which have been applied."""
        for _ in range(count):
            done = self._waiting.popleft()
            self._bytes -= _held(done)
            done.close()
        self._changed.set()

    def close(self) -> None:
        """Forget all."""
        self.taken(len(self._waiting))


def _held(transaction: Transaction) -> int:
    """Return what counts: one that is kept in a file lets nothing else be read."""
    return transaction.size if transaction.is_whole else MAX_BYTES + 1
