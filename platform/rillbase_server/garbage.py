"""Keeps the pauses of Python's garbage collector short in a server process.

Nearly everything that a request creates is freed by reference counting. By default, Python looks
for cycles after every 700 objects, which with dozens of concurrent requests means several
traversals per request; this took a fifth of the process's time. Modules and other objects loaded at
startup need not be examined again. A single collection must not take long either: with 50,000 new
objects, it took up to 10 ms.

By default, a computing thread holds the interpreter's lock for 5 ms, which blocks the event loop.
"""

from __future__ import annotations

import gc
import sys

#: New objects between collections of the youngest generation: about a hundred requests' worth.
YOUNGEST = 5_000
#: Number of collections of a generation before the next older one is collected too.
MIDDLE, OLDEST = 200, 50
#: How long a thread may hold the interpreter's lock while others wait for it.
SWITCH_S = 0.000_5


async def settle() -> None:
    """Exempt all existing objects from collection, and set thresholds for serving."""
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNGEST, MIDDLE, OLDEST)
