"""Clients that keep sending rejected requests are read more slowly."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from connections.penalty_delay import (
    BURST,
    REFUSALS_PER_S,
    REFUSALS_PER_S_CONTENDED,
    REMEMBERED,
    PenaltyDelay,
)
from foundation.contention import Contention


@dataclass
class Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


def delay_of(clock: Clock, contention: Contention | None = None) -> PenaltyDelay:
    """Return a penalty delay without contention by default."""
    return PenaltyDelay(contention or Contention(clock), clock)


def test_a_burst_of_rejections_delays_no_client() -> None:
    penalty_delay = delay_of(Clock())
    assert [penalty_delay.count_rejection("a") for _ in range(BURST)] == pytest.approx(
        [0.0] * BURST
    )


def test_beyond_a_burst_rejections_are_rate_limited() -> None:
    clock = Clock()
    penalty_delay = delay_of(clock)
    for _ in range(BURST + 5_000):
        clock.now_s += penalty_delay.count_rejection("a")
    assert abs(clock.now_s - (100.0 + 5_000 / REFUSALS_PER_S)) < 0.01


def test_under_contention_rejections_are_slower() -> None:
    clock = Clock()
    contention = Contention(clock)
    penalty_delay = delay_of(clock, contention)
    for _ in range(BURST + 1_000):
        contention.record("a")
        contention.record("b")
        clock.now_s += penalty_delay.count_rejection("a")
    assert clock.now_s - 100.0 > 1_000 / REFUSALS_PER_S_CONTENDED


def test_others_are_not_slowed_down() -> None:
    penalty_delay = delay_of(Clock())
    while penalty_delay.count_rejection("a") < 1 / REFUSALS_PER_S:
        pass
    assert penalty_delay.count_rejection("b") == 0.0


def test_after_a_calm_time_there_may_be_a_burst_again() -> None:
    clock = Clock()
    penalty_delay = delay_of(clock)
    while penalty_delay.count_rejection("a") < 1 / REFUSALS_PER_S:
        pass
    clock.now_s += 1.0
    assert [penalty_delay.count_rejection("a") for _ in range(BURST)] == pytest.approx(
        [0.0] * BURST
    )


def test_tenants_that_are_calm_are_forgotten() -> None:
    clock = Clock()
    penalty_delay = delay_of(clock)
    for tenant in range(20 * REMEMBERED):
        clock.now_s += 1.0
        penalty_delay.count_rejection(tenant)
    assert len(penalty_delay._paid_s) <= REMEMBERED + 1
