"""How long to wait before a retry: longer each time, and with jitter."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryBackoff:
    """The first wait, on average, and the longest one."""

    first_s: float
    max_s: float

    def wait_s(self, failures: int) -> float:
        """Return the wait after so many failures in a row."""
        step = min(self.first_s * 2.0 ** min(max(failures - 1, 0), 30), self.max_s)
        # With jitter: clients of a server that restarts must not return together.
        return min(step * random.uniform(0.5, 1.5), self.max_s)  # noqa: S311


RECONNECT = RetryBackoff(0.25, 20.0)
RETRY = RetryBackoff(0.1, 5.0)
#: Too many connections: there is no point in trying again soon.
REFUSED = RetryBackoff(10.0, 60.0)
