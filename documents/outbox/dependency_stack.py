"""Which transactions go before others that are older, since they wrote the same documents later.

What a row stood for is gone once its document was written again: its entry only says so. If the
transaction that wrote again came behind it, a tick or an atomic batch could be complete without
anything that shows what became of the document. So it goes before; and before it, if its own
documents were written once more, those who did that. Each is newer than the one behind it, so they
never go round in a circle.
"""

from __future__ import annotations

from collections.abc import Iterable

#: A document that is written again between any two reads is not run after for longer.
MOST_LEVELS = 8


class DependencyStack:
    """Transactions to publish first, the most urgent on top. A round starts with an empty stack."""

    def __init__(self) -> None:
        self._levels: list[list[int]] = []
        #: What this round has published.
        self.published: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._levels)

    def clear(self) -> None:
        self._levels.clear()
        self.published.clear()

    def first(self, most: int) -> tuple[int, ...]:
        """Return the next ones to publish, at most so many, in their order."""
        return tuple(self._levels[-1][:most])

    def put(self, newer: frozenset[int]) -> bool:
        """Have these go before all others; return whether that is any use."""
        missing = newer - self.published
        if not missing or len(self._levels) == MOST_LEVELS:
            return False
        self._levels.append(sorted(missing))
        return True

    def learn(self, published: Iterable[int]) -> None:
        """Learn what needs to wait for nothing any more."""
        self.published.update(published)
        while self._levels:
            left = [xid for xid in self._levels[-1] if xid not in self.published]
            if left:
                self._levels[-1] = left
                return
            self._levels.pop()
