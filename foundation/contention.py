"""Detects whether several tenants are active, so that bulk work can be throttled meanwhile.

A tenant that is alone on a server may use all of it. While others are active, bulk work of one
tenant pauses for a multiple of the time that it took: it competes for processors with the requests
of the others, in this process and in those that it calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

#: Tenants with requests within this window are active at the same time.
WINDOW_S = 0.25


class Contention:
    """Remembers which tenant was active last and when that changed. Thread-safe."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._last: Hashable = None
        self._changed_s = float("-inf")

    def record(self, tenant: Hashable) -> None:
        """Record a request of a tenant."""
        if tenant is not self._last and tenant != self._last:
            if self._last is not None:
                self._changed_s = self._monotonic_s()
            self._last = tenant

    @property
    def is_contended(self) -> bool:
        """Whether more than one tenant was active within the window."""
        return self._monotonic_s() - self._changed_s < WINDOW_S


#: Between tenants, in this process.
tenants = Contention()
