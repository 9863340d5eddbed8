"""How often a process that serves looks for garbage cycles.

Nearly everything that a request makes is freed by counting references. Python looks for cycles
after every 700 objects all the same, which with dozens of requests under way means walking over all
of them several times a request; measured, that took a fifth of the process's time. What the process
has loaded lives as long as it does and need not be looked at again.
"""

from __future__ import annotations

import gc

#: New objects between two looks at the youngest; some thousand requests' worth of cycles at most.
YOUNGEST = 50_000
#: Looks at a generation before the next older one is looked at too.
MIDDLE, OLDEST = 20, 50


async def settle() -> None:
    """Set everything aside that was made while the process started, and look rarely from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNGEST, MIDDLE, OLDEST)
