"""The generic cell rate algorithm, as pure functions.

A limit admits `burst` units at once and `rate_per_s` units in the long run. All of its state is
one number, the theoretical arrival time: the moment at which the bucket will be full again. Its
distance from now is the *backlog*. A request of cost c adds c intervals to the backlog and is
admitted if the result is at most `burst` intervals.

Everything is counted in whole microseconds. The interval between two units is rounded up, so that
at most rate x t + burst units are admitted in any time t; this lowers the effective rate by at most
rate / 1,000,000 (0.1 % at 1,000 a second).

The script in Valkey and the per-process counters only keep the arrival times; the decision is made
here or, in the script, by the same comparison of the same integers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from foundation.errors import RateLimited

US_PER_S = 1_000_000

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}\Z")


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit that applies to a request.

    `name` is the policy's public name and a metric label, so it never carries a tenant's name;
    `key` distinguishes the buckets under the policy.
    """

    name: str
    key: str
    rate_per_s: float
    burst: int
    cost: int = 1
    interval_us: int = field(init=False)
    #: How much this request adds to the backlog.
    increment_us: int = field(init=False)
    #: The largest backlog: all of the burst is used up.
    tolerance_us: int = field(init=False)
    #: The time in which an empty bucket fills up, in whole seconds.
    window_s: int = field(init=False)
    #: The bucket's name in Valkey.
    storage_key: str = field(init=False)

    def __post_init__(self) -> None:
        if self.burst < 1 or self.cost < 0:
            raise ValueError(f"limit {self.name!r}: burst must be >= 1 and cost >= 0")
        interval_us = _interval_us(self.name, self.rate_per_s)
        derived = {
            "interval_us": interval_us,
            "increment_us": self.cost * interval_us,
            "tolerance_us": self.burst * interval_us,
            "window_s": max(1, ceil(self.burst * interval_us / US_PER_S)),
            "storage_key": f"rillbase:limit:{self.name}:{self.key}",
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)


@lru_cache(maxsize=1024)
def _interval_us(name: str, rate_per_s: float) -> int:
    if not _NAME.match(name):
        raise ValueError(f"limit name {name!r} must match {_NAME.pattern}")
    if not rate_per_s > 0:
        raise ValueError(f"limit {name!r}: rate must be positive")
    return max(1, ceil(US_PER_S / rate_per_s))


class LimitState(NamedTuple):
    """The state of one limit after the decision."""

    limit: Limit
    backlog_us: int

    @property
    def remaining(self) -> int:
        """Units that would be admitted right now."""
        return (self.limit.tolerance_us - self.backlog_us) // self.limit.interval_us

    @property
    def reset_after_s(self) -> float:
        """Seconds until the whole burst is available again."""
        return self.backlog_us / US_PER_S


class Decision(NamedTuple):
    """A decision, and the limit that determined it.

    `limiting` is the limit that rejected (the one with the longest wait) or else the one with the
    smallest share left. `retry_after_s` is 0 when allowed, and None when waiting never helps
    because the cost is larger than the burst.
    """

    allowed: bool
    states: tuple[LimitState, ...]
    limiting: LimitState
    retry_after_s: float | None

    @property
    def policy(self) -> str:
        return self.limiting.limit.name

    @property
    def remaining(self) -> int:
        return self.limiting.remaining

    @property
    def reset_after_s(self) -> float:
        return self.limiting.reset_after_s

    def headers(self) -> dict[str, str]:
        """Render the fields of draft-ietf-httpapi-ratelimit-headers, and `Retry-After`."""
        fields = {
            "RateLimit-Policy": ", ".join(_policy_item(s.limit) for s in self.states),
            "RateLimit": ", ".join(
                f'"{s.limit.name}";r={s.remaining};t={ceil(s.reset_after_s)}' for s in self.states
            ),
        }
        if not self.allowed and self.retry_after_s is not None:
            fields["Retry-After"] = str(max(1, ceil(self.retry_after_s)))
        return fields

    def refusal(self) -> RateLimited:
        """Return the error to raise for a request that is not allowed."""
        limit = self.limiting.limit
        if self.retry_after_s is None:
            advice = f"the call costs {limit.cost} units and {limit.burst} is the maximum"
        else:
            advice = f"retry in {max(1, ceil(self.retry_after_s))} s"
        return RateLimited(f"Limit {limit.name!r} is exceeded: {advice}.", headers=self.headers())


def _policy_item(limit: Limit) -> str:
    return f'"{limit.name}";q={limit.burst};w={limit.window_s}'


def backlog(arrival_us: int, now_us: int, tolerance_us: int) -> int:
    """Return the backlog of a stored arrival time.

    Never more than the tolerance: a clock that was set back, or a limit that was lowered, must
    not lock a client out for longer than it takes to fill the bucket.
    """
    return min(max(arrival_us - now_us, 0), tolerance_us)


def admits(limits: Sequence[Limit], backlogs: Sequence[int], count: int) -> bool:
    """Return whether all limits admit so many requests at once."""
    return all(
        backlog_us + count * limit.increment_us <= limit.tolerance_us
        for limit, backlog_us in zip(limits, backlogs, strict=True)
    )


def decide(limits: Sequence[Limit], backlogs: Sequence[int]) -> Decision:
    """Decide a request from the backlogs: all limits admit it, or nothing is consumed."""
    excess = [
        b + limit.increment_us - limit.tolerance_us
        for limit, b in zip(limits, backlogs, strict=True)
    ]
    largest = max(excess)
    if largest > 0:
        states = tuple(map(LimitState, limits, backlogs))
        return Decision(
            allowed=False,
            states=states,
            limiting=states[excess.index(largest)],
            retry_after_s=_retry_after_s(limits, excess),
        )
    states = tuple(
        [
            LimitState(limit, limit.tolerance_us + over)
            for limit, over in zip(limits, excess, strict=True)
        ]
    )
    scarcest = max(states, key=_share_used)
    return Decision(allowed=True, states=states, limiting=scarcest, retry_after_s=0.0)


def _share_used(state: LimitState) -> float:
    return state.backlog_us / state.limit.tolerance_us


def _retry_after_s(limits: Sequence[Limit], excess: Sequence[int]) -> float | None:
    if any(limit.cost > limit.burst for limit in limits):
        return None
    return max(excess) / US_PER_S


def require_distinct(limits: Sequence[Limit]) -> None:
    """Reject a check without limits, or one that names a bucket twice."""
    if not limits:
        raise ValueError("a check needs at least one limit")
    if len(limits) > 1 and len({limit.storage_key for limit in limits}) < len(limits):
        raise ValueError("a check may name each bucket only once")
