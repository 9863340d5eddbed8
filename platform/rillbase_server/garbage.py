"""Keeps Python's own pauses short in a process that serves.

Nearly everything that a request creates is freed by reference counting. Python still looks for
cycles after every 700 objects, which with dozens of concurrent requests means traversing all of
them several times per request; measured, that took a fifth of the process's time. What the process
has loaded lives as long as the process and need not be examined again. A single collection must not
take long either: with 50,000 new objects, it took up to 10 ms.

A thread that only computes holds the interpreter's lock for 5 ms by default, and the event loop
waits for it.
"""

from __future__ import annotations

import gc
import sys

#: New objects between two looks at the youngest: some hundred requests' worth of cycles at most.
YOUNGEST = 5_000
#: Number of collections of a generation before the next older one is collected too.
MIDDLE, OLDEST = 200, 50
#: How long a thread may hold the interpreter's lock while others wait for it.
SWITCH_S = 0.000_5


async def settle() -> None:
    """Set everything aside that was made during startup, and look rarely from now on."""
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNGEST, MIDDLE, OLDEST)
