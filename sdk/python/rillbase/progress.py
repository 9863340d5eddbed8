"""A progress bar in the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO, TypeAlias

#: Called with the bytes sent so far, and the total.
Told: TypeAlias = Callable[[int, int], object]

WIDTH = 30
REDRAWN_EVERY_S = 0.1
MEGABYTE = 1_000_000


class Bar:
    """Redraws one line while work is in progress. Without a terminal, it draws nothing."""

    def __init__(self, what: str, out: TextIO | None = None) -> None:
        self._what = what
        self._out = sys.stderr if out is None else out
        self._is_watched = self._out.isatty()
        self._began = time.monotonic()
        self._drawn = 0.0

    def __call__(self, sent: int, total: int) -> None:
        """Show the progress."""
        now = time.monotonic()
        is_whole = sent >= total
        if not self._is_watched or (now - self._drawn < REDRAWN_EVERY_S and not is_whole):
            return
        self._drawn = now
        part = 1.0 if total == 0 else sent / total
        full = round(WIDTH * part)
        rate = sent / MEGABYTE / max(now - self._began, 1e-6)
        bar = "█" * full + "░" * (WIDTH - full)
        self._out.write(f"\r{self._what} {bar} {part:4.0%} {rate:6.1f} MB/s")
        self._out.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._is_watched and self._drawn:
            self._out.write("\n")
            self._out.flush()
