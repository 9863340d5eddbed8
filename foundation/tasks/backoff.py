"""Computes when a failed task runs again, without a clock or side effects."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

Dice = Callable[[], float]
"""Returns a number from 0 up to, but not including, 1."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that grow by `factor` from `first_s` up to `longest_s`.

    Half of each delay is random. Tasks that failed together, because a common server was
    unavailable, must not be retried together.
    """

    first_s: float = 2.0
    factor: float = 3.0
    longest_s: float = 3600.0

    def delay_s(self, failures: int, dice: Dice = random.random) -> float:
        """Return how long to wait after the given number of failures in a row (1, 2, …)."""
        if failures < 1:
            raise ValueError("a delay follows at least one failure")
        # Bounding the exponent keeps the power finite; the longest delay is reached much earlier.
        full_s = min(self.longest_s, self.first_s * self.factor ** min(failures - 1, 64))
        return full_s * (0.5 + dice() / 2)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a task is attempted.

    Eight attempts with the usual delays span about half an hour.
    """

    attempts: int = 8
    backoff: Backoff = Backoff()

    def retry_in_s(self, attempt: int, dice: Dice = random.random) -> float | None:
        """Return the delay after attempt number `attempt` has failed, or None after the last
        attempt.
        """
        if attempt >= self.attempts:
            return None
        return self.backoff.delay_s(attempt, dice)
