"""Whether several are served at the moment, so that what is hard on others is done more slowly.

Whoever is alone on a server may have all of it. Beside others, work that one party causes in large
amounts rests for a multiple of the time that it took: it shares its processor with everything else,
and others' answers wait for what it does everywhere, not only here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

#: Two that are served within this time are served at the same time.
LATELY_S = 0.25


class Company:
    """Who was served last, and when that was somebody else. Safe from any thread."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._last: Hashable = None
        self._changed_s = float("-inf")

    def seen(self, whom: Hashable) -> None:
        """Learn that somebody is being served."""
        if whom != self._last:
            if self._last is not None:
                self._changed_s = self._monotonic_s()
            self._last = whom

    @property
    def is_shared(self) -> bool:
        """Whether more than one was served lately."""
        return self._monotonic_s() - self._changed_s < LATELY_S


#: Tenants, in this process.
tenants = Company()
