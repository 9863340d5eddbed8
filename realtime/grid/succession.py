"""Decides when a shared grid replaces its predecessors. Hubs check every second whether the newest
grid is ready, and switch to it. Its predecessors are retired when it has been ready without
interruption for so long that all hubs have checked.
"""

from __future__ import annotations

from collections.abc import Sequence

from realtime.grid.layout import GridEpoch

OVERLAP_S = 10.0


class Succession:
    """Records since when the newest grid has been ready."""

    def __init__(self) -> None:
        self._watching: tuple[GridEpoch, float] | None = None

    def ready_successor(
        self, grids: Sequence[GridEpoch], *, watches: bool, now_s: float
    ) -> GridEpoch | None:
        """Return the newest grid if its predecessors may be retired. Grids are ordered by age."""
        if len(grids) <= 1 or not watches:
            self._watching = None
            return None
        if self._watching is None or self._watching[0] != grids[-1]:
            self._watching = (grids[-1], now_s)
        newest, since_s = self._watching
        return newest if now_s - since_s >= OVERLAP_S else None
