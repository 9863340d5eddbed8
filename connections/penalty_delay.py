"""Clients that keep sending rejected requests are read more slowly.

A rejected request costs the server as much as an accepted one, and rate limits do not count it.
Beyond a burst of rejections, the server delays reading from the tenant's connections, and delays
it longer while other tenants are active. TCP backpressure then slows the client down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

from foundation.contention import Contention

REFUSALS_PER_S = 1_000.0
REFUSALS_PER_S_CONTENDED = 50.0
BURST = 100
#: Above this number of tenants, those without a pending delay are evicted.
REMEMBERED = 1_000


class PenaltyDelay:
    """The rejections of one process, by tenant."""

    def __init__(
        self, contention: Contention, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._contention = contention
        self._monotonic_s = monotonic_s
        #: When the delay of a tenant's rejections ends.
        self._paid_s: dict[Hashable, float] = {}

    def count_rejection(self, tenant: Hashable) -> float:
        """Count a rejection; return for how many seconds nothing more should be read."""
        now_s = self._monotonic_s()
        if len(self._paid_s) > REMEMBERED:
            self._paid_s = {other: until for other, until in self._paid_s.items() if until > now_s}
        rate = REFUSALS_PER_S_CONTENDED if self._contention.is_contended else REFUSALS_PER_S
        paid_s = max(now_s, self._paid_s.get(tenant, 0.0)) + 1 / rate
        self._paid_s[tenant] = paid_s
        return max(0.0, paid_s - now_s - BURST / REFUSALS_PER_S)
