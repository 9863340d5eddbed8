"""Waits for conditions instead of sleeping."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

#: Pauses between two checks of a condition grow with the time that has been waited, which leaves
#: the CPU to the awaited processes: a check may be a request, and a wait may take a minute.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.002, 0.2
#: Up to this pause they grow fast: a condition that soon holds is soon seen.
QUICK_PAUSE_S = 0.05
#: Generous, for a busy machine: a wait ends as soon as its condition holds.
TIMEOUT_S = 120.0


def wait_until(holds: Callable[[], bool], *, what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Return as soon as the condition holds; fail with a message if it does not in time."""
    deadline, pauses = time.monotonic() + timeout_s, _pauses()
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}")
        time.sleep(next(pauses))


async def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for a condition while other tasks of this event loop run."""
    pauses = _pauses()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while not holds():  # noqa: ASYNC110 -- what is waited for is in other processes
                await asyncio.sleep(next(pauses))
    except TimeoutError:
        raise AssertionError(f"waited {TIMEOUT_S} s in vain for {what}") from None


def _pauses() -> Iterator[float]:
    pause_s = FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(LONGEST_PAUSE_S, pause_s * (1.25 if pause_s < QUICK_PAUSE_S else 1.02))
