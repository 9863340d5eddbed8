"""Memory of large messages goes back to the system when they are done with.

glibc serves a large block from a mapping of its own, which is returned when it is freed, but raises
its idea of `large` with every such block, up to 32 MiB. Blocks below that come from the heap, whose
end is seldom free: a burst of large messages would stay in the process for ever. A fixed threshold
keeps them out of it. Other C libraries have no such function and nothing is done there.
"""

from __future__ import annotations

import ctypes

_M_MMAP_THRESHOLD = -3
LARGE_BYTES = 256 * 1024


def return_large_blocks() -> None:
    """Set what counts as large, for this process."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
