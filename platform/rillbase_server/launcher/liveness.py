"""Decides from its responses whether a ready service still works.

A process may be alive and hang: stopped by a signal, or in an endless loop. Only time in which the
launcher asked counts: a launcher that was itself suspended has not waited for an answer.
"""

from dataclasses import dataclass

INTERVAL_S = 2.0
# Between two questions counts at most this.
LONGEST_GAP_S = 6.0
# How often it is asked how a service does, besides whether it does anything.
CONDITION_INTERVAL_S = 5.0


@dataclass
class Liveness:
    """For how long a service has not answered."""

    hung_after_s: float
    silent_s: float = 0.0
    _asked_at: float | None = None

    def asked(self, now: float, *, answered: bool) -> bool:
        """Record the outcome of a check; return whether the service hangs."""
        passed_s = 0.0 if self._asked_at is None else min(now - self._asked_at, LONGEST_GAP_S)
        self._asked_at = now
        self.silent_s = 0.0 if answered else self.silent_s + passed_s
        return self.silent_s >= self.hung_after_s
