"""Minimum transfer rates of peers.

There is no total deadline: an upload may take days. But in every time window in which the server
waits only for its peer, the peer must reach the minimum rate.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class TransferProgress:
    """One direction of one connection, checked periodically."""

    _since_s: float | None = None
    _moved_at_begin: int = 0

    def is_too_slow(
        self, now_s: float, moved: int, *, window_s: float, min_bytes_per_s: int
    ) -> bool:
        """Record the total moved while waiting for the peer; check complete windows."""
        if self._since_s is None:
            self._since_s, self._moved_at_begin = now_s, moved
            return False
        elapsed_s = now_s - self._since_s
        if elapsed_s < window_s:
            return False
        if moved - self._moved_at_begin < min_bytes_per_s * elapsed_s:
            return True
        self._since_s, self._moved_at_begin = now_s, moved
        return False

    def pause(self) -> None:
        """Record that the server is not waiting for the peer."""
        self._since_s = None
