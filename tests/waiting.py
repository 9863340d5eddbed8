"""Wait for a condition instead of sleeping and hoping."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_S = 0.01


def wait_until(holds: Callable[[], bool], *, what: str, timeout_s: float = 10.0) -> None:
    """Return as soon as the condition holds; fail with a sentence when it never does."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}")
        time.sleep(POLL_S)
