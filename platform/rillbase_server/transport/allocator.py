"""Returns memory to the system after a burst of large messages or of connections.

glibc serves a large block from a separate mapping, which it unmaps when the block is freed, but
raises its threshold for `large` with every such block, up to 32 MiB. Smaller blocks come from the
heap, whose end is seldom free, so the memory of a burst would stay with the process. A fixed
threshold keeps messages out of the heap, and `return_free_pages` gives back what connections took.
Other C libraries lack these functions; nothing is done there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

_M_MMAP_THRESHOLD = -3
LARGE_BYTES = 256 * 1024


def return_large_blocks() -> None:
    """Fix the threshold for large blocks in this process."""
    if (mallopt := _function("mallopt")) is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)


def return_free_pages() -> None:
    """Return the free pages of the heap. May take milliseconds: not for an event loop's thread."""
    if (trim := _function("malloc_trim")) is not None:
        trim(0)


def _function(name: str) -> Callable[..., int] | None:
    try:
        return getattr(ctypes.CDLL(None), name)  # type: ignore[no-any-return]
    except (AttributeError, OSError):
        return None
