"""Decides from its responses whether a ready service still works.

A process may run but hang: stopped by a signal, or in an endless loop. Only time in which the
launcher itself ran counts: a suspended launcher has not waited for a response.
"""

from dataclasses import dataclass

INTERVAL_S = 2.0
# The maximum time that counts between two checks.
LONGEST_GAP_S = 6.0
# How often a service's condition is checked, in addition to its liveness.
CONDITION_INTERVAL_S = 5.0
# How many times as long a service may be silent that waits for a disk, and would after a restart.
DISK_FACTOR = 8


@dataclass
class Liveness:
    """How long a service has not responded."""

    hung_after_s: float
    silent_s: float = 0.0
    _checked_at: float | None = None

    def record_check(self, now: float, *, answered: bool, waits_for_disk: bool = False) -> bool:
        """Record the outcome of a check; return whether the service hangs."""
        passed_s = 0.0 if self._checked_at is None else min(now - self._checked_at, LONGEST_GAP_S)
        self._checked_at = now
        self.silent_s = 0.0 if answered else self.silent_s + passed_s
        return self.silent_s >= self.hung_after_s * (DISK_FACTOR if waits_for_disk else 1)
