"""Requests that are counted in advance, on a virtual clock and beside a model of the script."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from foundation.limits.gcra import US_PER_S, Limit, admits, backlog, decide
from foundation.limits.prepaid import LIFETIME_S, MAX_AT_ONCE, PrepaidRequests


class Bucket:
    """A limit's bucket in Valkey, shared by all servers."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.arrival_us = 0
        self.calls = 0

    def count(self, limit: Limit, requests: int) -> list[int]:
        self.calls += 1
        now_us = int(self.now_s * US_PER_S)
        before_us = backlog(self.arrival_us, now_us, limit.tolerance_us)
        if admits([limit], [before_us], requests):
            self.arrival_us = now_us + before_us + requests * limit.increment_us
        return [before_us]


class Server:
    """One of the servers that ask the same bucket."""

    def __init__(self, bucket: Bucket, limits: Sequence[Limit]) -> None:
        self._bucket, self._limits = bucket, limits
        self._prepaid = PrepaidRequests(lambda: bucket.now_s)

    def request(self) -> bool:
        if (decision := self._prepaid.take(self._limits)) is not None:
            return decision.allowed
        with self._prepaid.counting(self._limits) as count:
            backlogs = self._bucket.count(self._limits[0], count)
            if count > 1 and not admits(self._limits, backlogs, count):
                backlogs = self._bucket.count(self._limits[0], 1)
            else:
                self._prepaid.counted(self._limits, backlogs, count)
        return decide(self._limits, backlogs).allowed


def limits(rate_per_s: float, burst: int) -> tuple[Limit, ...]:
    return (Limit("tenant", "t:1", rate_per_s, burst),)


@given(
    rate=st.integers(1, 2000),
    burst=st.integers(1, 400),
    steps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60)), max_size=300),
)
def test_all_servers_together_do_not_exceed_the_limit(
    rate: int, burst: int, steps: list[tuple[int, int]]
) -> None:
    bucket, limit = Bucket(), limits(rate, burst)
    servers = [Server(bucket, limit) for _ in range(3)]
    begin_s, admitted = bucket.now_s, 0
    for number, pause_ms in steps:
        bucket.now_s += pause_ms / 1000
        admitted += servers[number].request()
        assert admitted <= burst + rate * (bucket.now_s - begin_s) + 1e-6


@given(rate=st.integers(1, 2000), burst=st.integers(1, 400))
def test_a_burst_is_admitted_exactly(rate: int, burst: int) -> None:
    server = Server(Bucket(), limits(rate, burst))
    assert sum(server.request() for _ in range(burst + 50)) == burst


def test_a_busy_caller_is_counted_in_a_tenth_of_the_calls() -> None:
    bucket = Bucket()
    server = Server(bucket, limits(10_000, 10_000))
    for _ in range(3000):
        bucket.now_s += 0.003
        assert server.request()
    assert bucket.calls < 3000 / 10


def test_a_caller_that_paused_is_counted_in_advance_again() -> None:
    bucket = Bucket()
    server = Server(bucket, limits(10_000, 10_000))
    for paused in range(1, 6):
        # Some of the requests that were counted before the pause are left.
        for _ in range(100 + paused):
            bucket.now_s += 0.003
            assert server.request()
        bucket.now_s += LIFETIME_S * 1.01
    bucket.calls = 0
    for _ in range(300):
        bucket.now_s += 0.003
        assert server.request()
    assert bucket.calls < 300 / 10


def test_a_caller_that_pauses_is_counted_one_by_one() -> None:
    bucket = Bucket()
    server = Server(bucket, limits(100, 1000))
    for _ in range(20):
        bucket.now_s += LIFETIME_S * 1.01
        assert server.request()
    assert bucket.arrival_us - int(bucket.now_s * US_PER_S) == 10_000


def test_a_caller_that_stops_loses_a_small_part_of_its_burst() -> None:
    bucket, limit = Bucket(), limits(1, 200)
    server = Server(bucket, limit)
    for _ in range(40):
        server.request()
    used = (bucket.arrival_us - int(bucket.now_s * US_PER_S)) // limit[0].interval_us
    assert 40 <= used <= 40 + MAX_AT_ONCE


def test_the_shown_remainder_counts_only_requests_that_were_made() -> None:
    bucket, limit = Bucket(), limits(0.001, 100)
    prepaid = PrepaidRequests(lambda: bucket.now_s)
    prepaid.counted(limit, bucket.count(limit[0], 8), 8)
    shown = [decision.remaining for _ in range(7) if (decision := prepaid.take(limit))]
    assert shown == [98, 97, 96, 95, 94, 93, 92]
    assert prepaid.take(limit) is None


def test_requests_counted_under_old_limits_are_not_used_under_new_ones() -> None:
    bucket, limit = Bucket(), limits(10, 100)
    prepaid = PrepaidRequests(lambda: bucket.now_s)
    prepaid.counted(limit, bucket.count(limit[0], 8), 8)
    assert prepaid.take(limits(10, 50)) is None
