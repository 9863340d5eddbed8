"""Requests of busy callers, counted in advance.

While a caller's requests follow one another closely and less than half of its limits is used, one
script call counts several requests, and the next ones are admitted without a call. No caller gets
more than its limits, since each request is counted before it is admitted. A caller that stops loses
the requests that it has not made, a small part of its burst, until the bucket has filled up again.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from foundation.limits.gcra import US_PER_S, Decision, Limit, admits, decide

MAX_AT_ONCE = 16
LIFETIME_S = 0.1
#: At most one eighth of a burst is counted in advance.
BURST_DIVISOR = 8
CAPACITY = 10_000


@dataclass(slots=True)
class _Account:
    """The requests that were counted in advance for a caller and are left, and the backlogs at that
    time.
    """

    limits: Sequence[Limit]
    backlogs: list[int]
    counted_s: float
    counted: int
    used: int

    def remaining(self, now_s: float) -> int:
        """Return the number of requests that it still admits."""
        return self.counted - self.used if now_s - self.counted_s <= LIFETIME_S else 0

    def backlogs_us(self, now_s: float) -> list[int]:
        """Return the backlogs now, with the requests that were made."""
        elapsed_us = int((now_s - self.counted_s) * US_PER_S)
        return [
            max(0, backlog - elapsed_us) + self.used * limit.increment_us
            for limit, backlog in zip(self.limits, self.backlogs, strict=True)
        ]


class PrepaidRequests:
    """The accounts of an event loop's callers; the least recently counted is dropped first."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._accounts: OrderedDict[str, _Account] = OrderedDict()
        #: Callers of whom several requests are being counted.
        self._counting: set[str] = set()

    def take(self, limits: Sequence[Limit]) -> Decision | None:
        """Admit a request that was counted in advance, or return None if it has to be counted."""
        account, now_s = self._account(limits), self._monotonic_s()
        if account is None or not account.remaining(now_s):
            return None
        decision = decide(limits, account.backlogs_us(now_s))
        account.used += 1
        return decision if decision.allowed else None

    @contextmanager
    def counting(self, limits: Sequence[Limit]) -> Iterator[int]:
        """Return the number of requests to count now: the faster the last ones were made, the more.
        Meanwhile, other requests count only themselves.
        """
        key, count = limits[-1].storage_key, self._count(limits)
        if count == 1 or key in self._counting:
            yield 1
            return
        self._counting.add(key)
        try:
            yield count
        finally:
            self._counting.discard(key)

    def counted(self, limits: Sequence[Limit], backlogs: list[int], count: int) -> None:
        """Record requests that Valkey has counted, unless they exceeded the limits. One of them is
        made now.
        """
        if not admits(limits, backlogs, count):
            return
        key, account, now_s = limits[-1].storage_key, self._account(limits), self._monotonic_s()
        if account is not None and count == 1 and account.remaining(now_s):
            # Others were counted in the meantime, and some of them are left.
            return
        self._accounts[key] = _Account(limits, backlogs, now_s, count, used=1)
        self._accounts.move_to_end(key)
        if len(self._accounts) > CAPACITY:
            self._accounts.popitem(last=False)

    def _count(self, limits: Sequence[Limit]) -> int:
        account = self._account(limits)
        now_s = self._monotonic_s()
        if account is None or now_s - account.counted_s > LIFETIME_S:
            return 1
        is_fast = now_s - account.counted_s < LIFETIME_S / 2
        count = min(MAX_AT_ONCE, account.counted * 2 if is_fast else account.counted)
        for limit, backlog in zip(limits, account.backlogs_us(now_s), strict=True):
            room_us = min(limit.tolerance_us // BURST_DIVISOR, limit.tolerance_us // 2 - backlog)
            count = min(count, max(1, room_us // max(1, limit.increment_us)))
        return count

    def _account(self, limits: Sequence[Limit]) -> _Account | None:
        account = self._accounts.get(limits[-1].storage_key)
        # A caller's limits are the same object until they change.
        return account if account is not None and account.limits is limits else None
