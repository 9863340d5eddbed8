"""Counters of one process, for as long as Valkey is unavailable.

Each process then deliberately admits the full rate: the API keeps working, and no tenant gets more
than rate x processes. Memory is bounded: beyond `capacity` buckets the least recently used one is
evicted, that is, counted as full.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from foundation.limits.gcra import Decision, Limit, backlog, decide


def monotonic_us() -> int:
    return time.monotonic_ns() // 1000


class LocalCounters:
    """Arrival times by bucket, guarded by one lock; the least recently used is dropped first."""

    def __init__(self, capacity: int, clock_us: Callable[[], int] = monotonic_us) -> None:
        self._capacity = capacity
        self._clock_us = clock_us
        self._arrivals_us: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, limits: Sequence[Limit]) -> Decision:
        with self._lock:
            now_us = self._clock_us()
            decision = decide(
                limits,
                [
                    backlog(self._arrivals_us.get(x.storage_key, 0), now_us, x.tolerance_us)
                    for x in limits
                ],
            )
            if decision.allowed:
                for state in decision.states:
                    self._remember(state.limit.storage_key, now_us + state.backlog_us)
            return decision

    def _remember(self, key: str, arrival_us: int) -> None:
        self._arrivals_us[key] = arrival_us
        self._arrivals_us.move_to_end(key)
        if len(self._arrivals_us) > self._capacity:
            self._arrivals_us.popitem(last=False)

    def forget(self) -> None:
        """Drop every bucket, once Valkey counts again."""
        with self._lock:
            self._arrivals_us.clear()

    def __len__(self) -> int:
        return len(self._arrivals_us)
