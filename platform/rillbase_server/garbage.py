"""Keeps Python's own pauses short in a process that serves.

Nearly everything that a request makes is freed by counting references. Python looks for cycles
after every 700 objects all the same, which with dozens of requests under way means walking over all
of them several times a request; measured, that took a fifth of the process's time. What the process
has loaded lives as long as it does and need not be looked at again. One look must not take long
either: with 50,000 new objects it took up to 10 ms.

A thread that only computes keeps the interpreter's lock for 5 ms by default, and the event loop
waits for it.
"""

from __future__ import annotations

import gc
import sys

#: New objects between two looks at the youngest: some hundred requests' worth of cycles at most.
YOUNGEST = 5_000
#: Looks at a generation before the next older one is looked at too.
MIDDLE, OLDEST = 200, 50
#: For so long a thread may keep the interpreter's lock while others want it.
SWITCH_S = 0.000_5


async def settle() -> None:
    """Set everything aside that was made during startup, and look rarely from now on."""
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNGEST, MIDDLE, OLDEST)
