"""Which newer transactions must be published before older ones, having rewritten their documents.

Once a document has been written again, the older row's image is gone and its entry only says so.
If the newer transaction came after it, a tick or an atomic batch could be complete without
anything that shows what became of the document. So the newer one goes first; and before it, if its
documents were written again too, the transactions that did so. Each is newer than the one it
precedes, so there can be no cycle.
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
