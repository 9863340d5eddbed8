"""Transactions that were read and not yet applied.

The queue is bounded in bytes. While it is full, nothing is read from the server.
"""

from __future__ import annotations

import asyncio
from collections import deque

from sources.following.transactions import SourceTransaction

MAX_BYTES = 32 * 1024 * 1024
#: Maximum number of changes applied as one group, which subscribers see together.
MAX_CHANGES = 500


class Inbox:
    """The queue between the task that reads and the task that applies."""

    def __init__(self) -> None:
        self._waiting: deque[SourceTransaction] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def oldest(self) -> SourceTransaction | None:
        """The oldest transaction."""
        return self._waiting[0] if self._waiting else None

    async def put(self, transaction: SourceTransaction) -> None:
        """Wait for room, then add a transaction."""
        while self._bytes > MAX_BYTES:
            self._changed.clear()
            await self._changed.wait()
        self._waiting.append(transaction)
        self._bytes += _counted_bytes(transaction)
        self._changed.set()

    async def wait(self, timeout_s: float) -> bool:
        """Wait until there is a transaction, or the timeout. Return whether there is one."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._waiting:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def first(self, max_changes: int = MAX_CHANGES) -> list[SourceTransaction]:
        """Return the next transactions to apply together: several small ones, or a large one.

        They stay in the queue until `remove_first`. Grouping saves commits.
        """
        group: list[SourceTransaction] = []
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

    def remove_first(self, count: int) -> None:
        """Remove the first `count`, which have been applied."""
        for _ in range(count):
            transaction = self._waiting.popleft()
            self._bytes -= _counted_bytes(transaction)
            transaction.close()
        self._changed.set()

    def close(self) -> None:
        """Discard all transactions."""
        self.remove_first(len(self._waiting))


def _counted_bytes(transaction: SourceTransaction) -> int:
    """Return the bytes to count. A transaction in a file blocks all further reading."""
    return transaction.size if transaction.is_whole else MAX_BYTES + 1
