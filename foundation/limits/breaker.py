"""A circuit breaker: while a server is down, only an occasional call probes it.

Closed: all calls are allowed. The first failure opens it. Open: no calls are made until the pause
is over; then exactly one caller probes, and the pause doubles with each probe that fails, up to a
limit. Any success closes it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import Enum

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 2.0


class Permit(Enum):
    """How a caller may proceed."""

    CALL = "call"
    PROBE = "probe"
    REFUSED = "refused"


class Breaker:
    """Thread-safe; `failed` and `succeeded` return whether they changed the state."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open = False
        self._pause_s = FIRST_PAUSE_S
        self._probe_at = 0.0

    @property
    def closed(self) -> bool:
        return not self._open

    def permit(self) -> Permit:
        if not self._open:
            return Permit.CALL
        with self._lock:
            if self._clock() < self._probe_at:
                return Permit.REFUSED
            self._probe_at = self._clock() + self._pause_s
            return Permit.PROBE

    def failed(self, permit: Permit) -> bool:
        with self._lock:
            opened = not self._open
            if opened:
                self._pause_s = FIRST_PAUSE_S
            elif permit is Permit.PROBE:
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            else:
                return False
            self._open = True
            self._probe_at = self._clock() + self._pause_s
            return opened

    def succeeded(self) -> bool:
        if not self._open:
            return False
        with self._lock:
            changed = self._open
            self._open = False
            return changed
