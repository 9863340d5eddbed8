"""Valkey's time, estimated without asking. Each reply of the event layer contains its time. Since
then, at least as much time has passed there as here since the reply arrived, so the estimate never
runs ahead of Valkey. It lags behind by the latency of the reply, and by any pause of the process:
an entry of a writer that was paused has an old stamp and is rejected.
"""

from __future__ import annotations

from collections.abc import Callable

_US_PER_S = 1_000_000


class ValkeyClock:
    """Follows one server's clock, also when it is set. `monotonic_s` never goes back."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._ahead_us: int | None = None

    def observe(self, time_us: int) -> None:
        """Record the time of a reply that has just arrived."""
        self._ahead_us = time_us - self._here_us()

    def forget(self) -> None:
        """Stop estimating: the next reply may come from another server."""
        self._ahead_us = None

    @property
    def known(self) -> bool:
        return self._ahead_us is not None

    def now_us(self) -> int | None:
        """Return the latest time that Valkey's clock has certainly reached; None if unknown."""
        return None if self._ahead_us is None else self._here_us() + self._ahead_us

    def _here_us(self) -> int:
        return int(self._monotonic_s() * _US_PER_S)
