"""The algorithm itself, and how a decision is reported to the caller."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.limits import Limit
from foundation.limits.gcra import backlog, decide
from foundation.limits.local_counters import LocalCounters


class Clock:
    def __init__(self) -> None:
        self.now_us = 1_000_000_000

    def __call__(self) -> int:
        return self.now_us


def limit(name: str = "tenant", *, rate: float = 10, burst: int = 5, cost: int = 1) -> Limit:
    return Limit(name, "a", rate, burst, cost)


def test_a_fresh_bucket_admits_the_burst_and_then_refuses() -> None:
    counters = LocalCounters(100, Clock())
    answers = [counters.check([limit(burst=3)]).allowed for _ in range(5)]
    assert answers == [True, True, True, False, False]


def test_a_rejected_caller_is_admitted_exactly_after_retry_after() -> None:
    clock = Clock()
    counters = LocalCounters(100, clock)
    counters.check([limit(burst=5, cost=5)])
    refusal = counters.check([limit(burst=5, cost=2)])
    assert refusal.retry_after_s == 0.2
    clock.now_us += 199_999
    assert not counters.check([limit(burst=5, cost=2)]).allowed
    clock.now_us += 1
    assert counters.check([limit(burst=5, cost=2)]).allowed


def test_if_one_limit_rejects_the_others_are_not_charged() -> None:
    counters = LocalCounters(100, Clock())
    wide, narrow = limit("tenant", burst=10), limit("key", burst=1)
    assert counters.check([wide, narrow]).allowed
    refusal = counters.check([wide, narrow])
    assert refusal.policy == "key"
    assert {s.limit.name: s.remaining for s in refusal.states} == {"tenant": 9, "key": 0}
    assert counters.check([wide]).remaining == 8


def test_a_cost_above_the_burst_is_refused_without_promising_that_waiting_helps() -> None:
    decision = LocalCounters(100, Clock()).check([limit(burst=5, cost=6)])
    assert not decision.allowed
    assert decision.retry_after_s is None
    assert "Retry-After" not in decision.headers()
    assert "costs 6 units" in decision.refusal().detail


def test_a_lowered_limit_blocks_at_most_until_the_bucket_has_refilled() -> None:
    clock = Clock()
    counters = LocalCounters(100, clock)
    counters.check([limit(rate=0.01, burst=100, cost=100)])
    assert counters.check([limit(rate=10, burst=5)]).retry_after_s == 0.1


def test_headers_have_the_structured_form_of_the_draft() -> None:
    counters = LocalCounters(100, Clock())
    decision = counters.check([limit("tenant", rate=100, burst=200), limit("key", rate=0.5)])
    assert decision.headers() == {
        "RateLimit-Policy": '"tenant";q=200;w=2, "key";q=5;w=10',
        "RateLimit": '"tenant";r=199;t=1, "key";r=4;t=2',
    }


def test_a_rejection_contains_retry_after_in_whole_seconds() -> None:
    counters = LocalCounters(100, Clock())
    slow = limit("sign-in", rate=1 / 90, burst=1)
    counters.check([slow])
    error = counters.check([slow]).refusal()
    assert error.status == 429
    assert error.code == "rate_limited"
    assert error.headers["Retry-After"] == "90"


@pytest.mark.parametrize(
    ("name", "rate", "burst", "cost"),
    [("Tenant", 1, 1, 1), ('a"b', 1, 1, 1), ("a", 0, 1, 1), ("a", 1, 0, 1), ("a", 1, 1, -1)],
)
def test_an_invalid_limit_is_rejected(name: str, rate: float, burst: int, cost: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        Limit(name, "a", rate, burst, cost)


def test_a_check_names_each_bucket_once() -> None:
    counters_limits = [limit("tenant"), limit("tenant")]
    from foundation.limits.gcra import require_distinct

    with pytest.raises(ValueError, match="only once"):
        require_distinct(counters_limits)
    with pytest.raises(ValueError, match="at least one"):
        require_distinct([])


def test_memory_is_bounded_by_evicting_the_longest_idle_callers() -> None:
    counters = LocalCounters(3, Clock())
    for key in "abcd":
        counters.check([Limit("tenant", key, 1, 1)])
    assert len(counters) == 3
    assert not counters.check([Limit("tenant", "d", 1, 1)]).allowed
    assert counters.check([Limit("tenant", "a", 1, 1)]).allowed


@given(
    rate=st.floats(0.01, 100_000),
    burst=st.integers(1, 1000),
    steps=st.lists(st.tuples(st.integers(0, 2_000_000), st.integers(1, 50)), max_size=60),
)
def test_no_span_of_time_admits_more_than_rate_times_span_plus_burst(
    rate: float, burst: int, steps: list[tuple[int, int]]
) -> None:
    clock = Clock()
    counters = LocalCounters(10, clock)
    admitted: list[tuple[int, int]] = []
    for pause_us, cost in steps:
        clock.now_us += pause_us
        if counters.check([Limit("tenant", "a", rate, burst, cost)]).allowed:
            admitted.append((clock.now_us, cost))
    for first, (begin, _) in enumerate(admitted):
        total = 0
        for end, cost in admitted[first:]:
            total += cost
            assert total <= Fraction(rate) * (end - begin) / 1_000_000 + burst


@given(
    arrival=st.integers(0, 2**53),
    now=st.integers(0, 2**53),
    burst=st.integers(1, 100),
    cost=st.integers(0, 200),
)
def test_a_decision_is_within_bounds_for_any_stored_state(
    arrival: int, now: int, burst: int, cost: int
) -> None:
    requested = limit(burst=burst, cost=cost)
    decision = decide([requested], [backlog(arrival, now, requested.tolerance_us)])
    assert 0 <= decision.remaining <= burst
    assert 0 <= decision.reset_after_s <= requested.tolerance_us / 1_000_000
