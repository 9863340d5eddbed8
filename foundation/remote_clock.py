"""Another server's time, estimated without asking.

Some of its replies contain its time. Since then, at least as much time has passed there as here
since the reply arrived, so the estimate never runs ahead of the server. It lags behind by the
latency of the reply, and by any pause of this process.
"""

from __future__ import annotations

from collections.abc import Callable

_US_PER_S = 1_000_000


class RemoteClock:
    """Follows one server's clock, also when it is set. `monotonic_s` never goes back."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._ahead_us: int | None = None
        self._observed_s = float("-inf")

    def observe(self, time_us: int) -> None:
        """Record the time of a reply that has just arrived."""
        self._observed_s = self._monotonic_s()
        self._ahead_us = time_us - int(self._observed_s * _US_PER_S)

    def forget(self) -> None:
        """Stop estimating: the next reply may come from another server."""
        self._ahead_us = None

    @property
    def known(self) -> bool:
        return self._ahead_us is not None

    def now_us(self, max_age_s: float = float("inf")) -> int | None:
        """Return the latest time that the server's clock has certainly reached; None if unknown,
        or observed longer ago than `max_age_s`.
        """
        now_s = self._monotonic_s()
        if self._ahead_us is None or now_s - self._observed_s > max_age_s:
            return None
        return int(now_s * _US_PER_S) + self._ahead_us
