"""When a caller may try a server that has failed."""

from __future__ import annotations

from foundation.limits.breaker import FIRST_PAUSE_S, LONGEST_PAUSE_S, Breaker, Permit


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_after_a_failure_one_probe_follows_the_pause() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    assert breaker.failed(breaker.permit())
    assert breaker.permit() is Permit.REFUSED
    clock.now += FIRST_PAUSE_S
    assert [breaker.permit() for _ in range(3)] == [Permit.PROBE, Permit.REFUSED, Permit.REFUSED]


def test_pauses_double_up_to_a_bound_and_start_short_again_after_a_success() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    breaker.failed(Permit.CALL)
    pauses = []
    for _ in range(6):
        begin = clock.now
        while breaker.permit() is Permit.REFUSED:
            clock.now += 0.125
        pauses.append(clock.now - begin)
        breaker.failed(Permit.PROBE)
    assert pauses == [0.25, 0.5, 1.0, 2.0, 2.0, 2.0]
    assert max(pauses) == LONGEST_PAUSE_S
    assert breaker.succeeded()
    breaker.failed(Permit.CALL)
    clock.now += FIRST_PAUSE_S
    assert breaker.permit() is Permit.PROBE


def test_late_failures_of_earlier_calls_change_nothing() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    assert breaker.failed(Permit.CALL)
    assert not breaker.failed(Permit.CALL)
    clock.now += FIRST_PAUSE_S
    assert breaker.permit() is Permit.PROBE


def test_a_success_is_reported_once() -> None:
    breaker = Breaker(Clock())
    assert not breaker.succeeded()
    breaker.failed(Permit.CALL)
    assert breaker.succeeded()
    assert not breaker.succeeded()
    assert breaker.permit() is Permit.CALL
