"""Beat's clock with a sign of life: each tick renews the time of a file.

A process may be alive while its clock stands still; its supervisor notices by the file's age.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from celery.beat import PersistentScheduler

#: Set by the process that runs beat.
MARKS: list[Path] = []


def renew(mark: Path) -> None:
    """Set a file's time to now; a missing file means that nothing is ready yet."""
    with contextlib.suppress(FileNotFoundError):
        os.utime(mark)


class TickingScheduler(PersistentScheduler):  # type: ignore[misc] # Celery has no types
    """The scheduler that remembers over restarts, seen to be ticking."""

    def tick(self, *arguments: object, **named: object) -> float:
        for mark in MARKS:
            renew(mark)
        next_s: float = super().tick(*arguments, **named)
        return next_s
