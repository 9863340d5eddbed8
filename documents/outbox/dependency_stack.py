"""Orders transactions so that newer writes of a document are published before older ones.

Once a document has been written again, the image of the older row is gone, and its entry is only
marked as superseded. If the newer transaction were published later, a tick or an atomic batch could
be complete without the current state of the document. So the newer transaction is published first,
after those that have rewritten its documents in turn. Each is newer than the one that it precedes,
so there is no cycle.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Limits the depth for a document that is rewritten between any two reads.
MOST_LEVELS = 8


class DependencyStack:
    """Transactions to publish first, the most urgent on top. A round starts with an empty stack."""

    def __init__(self) -> None:
        self._levels: list[list[int]] = []
        #: Transactions published in this round.
        self.published: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._levels)

    def clear(self) -> None:
        self._levels.clear()
        self.published.clear()

    def first(self, most: int) -> tuple[int, ...]:
        """Return the next transactions to publish, at most `most`, in order."""
        return tuple(self._levels[-1][:most])

    def put(self, newer: frozenset[int]) -> bool:
        """Push these before all others; return whether there were any and there was room."""
        missing = newer - self.published
        if not missing or len(self._levels) == MOST_LEVELS:
            return False
        self._levels.append(sorted(missing))
        return True

    def learn(self, published: Iterable[int]) -> None:
        """Remove transactions that have been published."""
        self.published.update(published)
        while self._levels:
            left = [xid for xid in self._levels[-1] if xid not in self.published]
            if left:
                self._levels[-1] = left
                return
            self._levels.pop()
