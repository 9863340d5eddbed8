"""How long a tenant's connections are not read after what they asked for was refused.

A client that goes on asking for what its tenant may not have costs the server as much as one that
is served, and limits do not count refusals. So beyond a burst of them its connection is read no
faster than refusals may come, and more slowly still while others are served; what it sends
meanwhile waits in its own network.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

from foundation.company import Company

REFUSALS_PER_S = 1_000.0
REFUSALS_PER_S_IN_COMPANY = 200.0
BURST = 100
#: How many tenants are remembered at least; those who have been calm are forgotten beyond.
REMEMBERED = 1_000


class PenaltyDelay:
    """The refusals of one process, by tenant."""

    def __init__(self, company: Company, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._company = company
        self._monotonic_s = monotonic_s
        #: Until when a tenant's refusals are paid for.
        self._paid_s: dict[Hashable, float] = {}

    def refused(self, tenant: Hashable) -> float:
        """Count a refusal; return for how many seconds nothing more should be read."""
        now_s = self._monotonic_s()
        if len(self._paid_s) > REMEMBERED:
            self._paid_s = {who: until for who, until in self._paid_s.items() if until > now_s}
        rate = REFUSALS_PER_S_IN_COMPANY if self._company.is_shared else REFUSALS_PER_S
        paid_s = max(now_s, self._paid_s.get(tenant, 0.0)) + 1 / rate
        self._paid_s[tenant] = paid_s
        return max(0.0, paid_s - now_s - BURST / REFUSALS_PER_S)
