"""Wait for a condition instead of sleeping and hoping."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

POLL_S = 0.01
#: Ample, for a machine that has much else to do: whoever waits goes on as soon as it may.
TIMEOUT_S = 60.0


def wait_until(holds: Callable[[], bool], *, what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Return as soon as the condition holds; fail with a sentence when it never does."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}")
        time.sleep(POLL_S)


async def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for a condition while others run in this event loop."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while not holds():  # noqa: ASYNC110 -- what is waited for is in other processes
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise AssertionError(f"waited {TIMEOUT_S} s in vain for {what}") from None
