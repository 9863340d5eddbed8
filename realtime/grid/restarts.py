"""When something that keeps ending is started again."""

from __future__ import annotations

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 10.0
#: Whoever has lived for so long has lived well: the next delay is the first one again.
GOOD_LIFE_S = 30.0


class Restarts:
    """The delays of one thing. Times are of any clock that does not go back."""

    def __init__(self) -> None:
        self._delay_s = FIRST_DELAY_S
        self._started_s: float | None = None
        self._due_s = 0.0

    def due(self, now_s: float) -> bool:
        """Tell whether it may be started."""
        return now_s >= self._due_s

    def started(self, now_s: float) -> None:
        self._started_s = now_s

    def ended(self, now_s: float) -> None:
        """Learn that it has ended; the delay doubles with each short life."""
        if self._started_s is not None and now_s - self._started_s >= GOOD_LIFE_S:
            self._delay_s = FIRST_DELAY_S
        self._due_s = now_s + self._delay_s
        self._delay_s = min(LONGEST_DELAY_S, 2 * self._delay_s)
