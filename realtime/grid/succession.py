"""When one shared grid takes over from those before it.

Hubs look every second whether the newest grid watches, and go over to it. Those before it are
retired when it has watched without a break for so long that all of them have looked.
"""

from __future__ import annotations

from collections.abc import Sequence

from realtime.grid.layout import GridEpoch

OVERLAP_S = 10.0


class Succession:
    """Remembers since when the newest grid watches."""

    def __init__(self) -> None:
        self._watching: tuple[GridEpoch, float] | None = None

    def ripe(self, grids: Sequence[GridEpoch], *, watches: bool, now_s: float) -> GridEpoch | None:
        """Return the newest grid when those before it may go. Grids are in order of their age."""
        if len(grids) <= 1 or not watches:
            self._watching = None
            return None
        if self._watching is None or self._watching[0] != grids[-1]:
            self._watching = (grids[-1], now_s)
        newest, since_s = self._watching
        return newest if now_s - since_s >= OVERLAP_S else None
