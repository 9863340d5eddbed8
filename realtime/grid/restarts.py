"""When something that keeps ending is restarted, and when to give up."""

from __future__ import annotations

import random

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 10.0
#: After a run of this length, the next delay is the shortest again.
GOOD_LIFE_S = 30.0
#: Give up after this many starts in a row of a node that never reported.
PLACEMENT_TRIES = 3
FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 60.0


class RestartDelays:
    """The restart delays of one node. Times are from any monotonic clock."""

    def __init__(self) -> None:
        self._delay_s = FIRST_DELAY_S
        self._started_s: float | None = None
        self._due_s = 0.0
        self._unplaced = 0

    @property
    def exhausted(self) -> bool:
        """Whether it failed to start so often that the launcher must be broken."""
        return self._unplaced >= PLACEMENT_TRIES

    def due(self, now_s: float) -> bool:
        """Return whether it may be started."""
        return now_s >= self._due_s

    def started(self, now_s: float) -> None:
        self._started_s = now_s

    def ended(self, now_s: float, *, placed: bool = True) -> None:
        """Record that it has ended; the delay doubles with each short run."""
        if self._started_s is not None and now_s - self._started_s >= GOOD_LIFE_S:
            self._delay_s = FIRST_DELAY_S
        self._due_s = now_s + self._delay_s
        self._delay_s = min(LONGEST_DELAY_S, 2 * self._delay_s)
        self._unplaced = 0 if placed else self._unplaced + 1


class RetryTimer:
    """Pauses between attempts at something expensive: each twice as long, less a random part of up
    to half, so that several that failed together do not retry together.
    """

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.SystemRandom()
        self._failures = 0
        self._due_s = 0.0

    @property
    def failures(self) -> int:
        """Failures in a row."""
        return self._failures

    def due(self, now_s: float) -> bool:
        return now_s >= self._due_s

    def failed(self, now_s: float) -> float:
        """Return how long the next try waits."""
        # The exponent is bounded so that no number of failures overflows a float.
        longest_s = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(self._failures, 32))
        self._failures += 1
        delay_s = longest_s * self._chance.uniform(0.5, 1.0)
        self._due_s = now_s + delay_s
        return delay_s

    def succeeded(self) -> None:
        self._failures, self._due_s = 0, 0.0
