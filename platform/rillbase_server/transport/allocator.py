"""Returns memory to the system after a burst of large messages or of connections.

glibc allocates a large block in a separate mapping, which it unmaps when the block is freed, but
raises its threshold for `large` with every such block, up to 32 MiB. Smaller blocks come from the
heap, whose end is rarely free, so the process would keep the memory of a burst. A fixed threshold
keeps messages out of the heap, and `return_free_pages` returns the memory of closed connections.
Other C libraries lack these functions; there, nothing is done.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

_M_MMAP_THRESHOLD = -3
LARGE_BYTES = 256 * 1024
#: Free pages are returned after this much growth, and at most once per interval.
GROWTH_BYTES, TRIM_INTERVAL_S = 16 * 1024 * 1024, 10.0


class TrimSchedule:
    """Decides when to return free pages: some time after the process has grown."""

    def __init__(self, resident_bytes: Callable[[], int]) -> None:
        self._resident_bytes = resident_bytes
        #: The lowest resident memory since the last trim.
        self._least_bytes = self._resident_bytes()
        self._is_due_s: float | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the process has grown since the last trim."""
        return self._is_due_s is not None

    def is_due(self, now_s: float) -> bool:
        """Check the process's memory. Called about once a second."""
        now_bytes = self._resident_bytes()
        self._least_bytes = min(self._least_bytes, now_bytes)
        if self._is_due_s is None:
            if now_bytes > self._least_bytes + GROWTH_BYTES:
                self._is_due_s = now_s + TRIM_INTERVAL_S
            return False
        if now_s < self._is_due_s:
            return False
        # Later growth is compared with the memory after this trim.
        self._is_due_s, self._least_bytes = None, now_bytes
        return True


def return_large_blocks() -> None:
    """Fix the threshold for large blocks in this process."""
    if (mallopt := _function("mallopt")) is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)


def return_free_pages() -> None:
    """Return the free pages of the heap. May take milliseconds, so not for event loops."""
    if (trim := _function("malloc_trim")) is not None:
        trim(0)


def resident_bytes() -> int:
    """Return the resident memory of this process, or 0 if the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _function(name: str) -> Callable[..., int] | None:
    try:
        return getattr(ctypes.CDLL(None), name)  # type: ignore[no-any-return]
    except (AttributeError, OSError):
        return None
