"""Waits for conditions instead of sleeping."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

POLL_S = 0.01
#: Generous, for a busy machine: a wait ends as soon as its condition holds.
TIMEOUT_S = 60.0


def wait_until(holds: Callable[[], bool], *, what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Return as soon as the condition holds; fail with a message if it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}")
        time.sleep(POLL_S)


async def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for a condition while other tasks of this event loop run."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while not holds():  # noqa: ASYNC110 -- what is waited for is in other processes
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise AssertionError(f"waited {TIMEOUT_S} s in vain for {what}") from None
