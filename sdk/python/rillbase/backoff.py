"""How long to wait before a retry: longer each time, and with jitter."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryBackoff:
    """The average first wait, and the longest wait."""

    first_s: float
    max_s: float

    def wait_s(self, failures: int) -> float:
        """Return the wait after so many failures in a row."""
        step = min(self.first_s * 2.0 ** min(max(failures - 1, 0), 30), self.max_s)
        # With jitter, so that clients of a restarted server do not reconnect at the same time.
        return min(step * random.uniform(0.5, 1.5), self.max_s)  # noqa: S311


RECONNECT = RetryBackoff(0.25, 20.0)
RETRY = RetryBackoff(0.1, 5.0)
#: Too many connections: retrying soon is pointless.
REFUSED = RetryBackoff(10.0, 60.0)
