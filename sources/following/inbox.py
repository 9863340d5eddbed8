"""Transactions that were read and not yet applied.

Bounded in bytes: while it is full, the server is not read.
"""

from __future__ import annotations

import asyncio
from collections import deque

from sources.following.transactions import SourceTransaction

MAX_BYTES = 32 * 1024 * 1024
#: Changes applied together: subscribers see them as one group, and later ones wait for them.
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
        """Add a transaction as soon as there is room for it."""
        while self._bytes > MAX_BYTES:
            self._changed.clear()
            await self._changed.wait()
        self._waiting.append(transaction)
        self._bytes += _held(transaction)
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
        """Return the next transactions to apply together.

        Several small ones in order, so that few commits keep up with many, or a single large one.
        They stay until they are `taken`.
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

    def taken(self, count: int) -> None:
        """Remove the first `count`, which have been applied."""
        for _ in range(count):
            done = self._waiting.popleft()
            self._bytes -= _held(done)
            done.close()
        self._changed.set()

    def close(self) -> None:
        """Discard all transactions."""
        self.taken(len(self._waiting))


def _held(transaction: SourceTransaction) -> int:
    """Return the bytes to count: a transaction kept in a file blocks all further reading."""
    return transaction.size if transaction.is_whole else MAX_BYTES + 1
