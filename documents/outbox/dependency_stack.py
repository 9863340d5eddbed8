"""Orders transactions so that newer writes of a document are published before older ones.

Once a document has been written again, the image of the older row is gone, and its entry is only
marked as superseded. If the newer transaction were published later, a tick or an atomic batch could
be complete without the current state of the document. So the newer transaction is published first,
after those that have rewritten its documents in turn. Each is newer than the one that it precedes,
so there is no cycle.
"""

from __future__ import annotations

from collections.abc import Iterable

#: How often a transaction of the backlog may wait for newer ones. A document that is rewritten
#: between any two reads would otherwise keep the relay from ever publishing it.
MOST_PUSHES = 16


class DependencyStack:
    """Transactions to publish first, the most urgent on top. A round starts with an empty stack."""

    def __init__(self) -> None:
        self._levels: list[list[int]] = []
        self._pushes = 0
        #: Transactions published in this round.
        self.published: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._levels)

    def clear(self) -> None:
        self._levels.clear()
        self._pushes = 0
        self.published.clear()

    def allow_more(self) -> None:
        """Let transactions wait again: the backlog has advanced."""
        self._pushes = 0

    def next_transactions(self, limit: int) -> tuple[int, ...]:
        """Return the next transactions to publish, at most `limit`, in order."""
        return tuple(self._levels[-1][:limit])

    def push(self, newer: frozenset[int]) -> bool:
        """Push transactions that must be published first. Return False if there are none, or if the
        backlog has waited often enough.
        """
        missing = newer - self.published
        if not missing or self._pushes == MOST_PUSHES:
            return False
        self._pushes += 1
        self._levels.append(sorted(missing))
        return True

    def remove_published(self, published: Iterable[int]) -> None:
        """Remove transactions that have been published."""
        self.published.update(published)
        while self._levels:
            remaining = [xid for xid in self._levels[-1] if xid not in self.published]
            if remaining:
                self._levels[-1] = remaining
                return
            self._levels.pop()
