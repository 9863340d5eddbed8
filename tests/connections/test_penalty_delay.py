"""Whoever is refused again and again is read more slowly, and only that tenant."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from connections.penalty_delay import (
    BURST,
    REFUSALS_PER_S,
    REFUSALS_PER_S_IN_COMPANY,
    REMEMBERED,
    PenaltyDelay,
)
from foundation.company import Company


@dataclass
class Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


def patient(clock: Clock, company: Company | None = None) -> PenaltyDelay:
    """Return the penalty_delay with whoever is alone, unless there is company."""
    return PenaltyDelay(company or Company(clock), clock)


def test_a_burst_of_refusals_costs_nobody_time() -> None:
    penalty_delay = patient(Clock())
    assert [penalty_delay.refused("a") for _ in range(BURST)] == pytest.approx([0.0] * BURST)


def test_beyond_a_burst_refusals_come_no_faster_than_they_may() -> None:
    clock = Clock()
    penalty_delay = patient(clock)
    for _ in range(BURST + 5_000):
        clock.now_s += penalty_delay.refused("a")
    assert abs(clock.now_s - (100.0 + 5_000 / REFUSALS_PER_S)) < 0.01


def test_beside_others_refusals_come_more_slowly() -> None:
    clock = Clock()
    company = Company(clock)
    penalty_delay = patient(clock, company)
    for _ in range(BURST + 1_000):
        company.seen("a")
        company.seen("b")
        clock.now_s += penalty_delay.refused("a")
    assert clock.now_s - 100.0 > 1_000 / REFUSALS_PER_S_IN_COMPANY


def test_others_are_not_slowed_down() -> None:
    penalty_delay = patient(Clock())
    while penalty_delay.refused("a") < 1 / REFUSALS_PER_S:
        pass
    assert penalty_delay.refused("b") == 0.0


def test_after_a_calm_time_there_may_be_a_burst_again() -> None:
    clock = Clock()
    penalty_delay = patient(clock)
    while penalty_delay.refused("a") < 1 / REFUSALS_PER_S:
        pass
    clock.now_s += 1.0
    assert [penalty_delay.refused("a") for _ in range(BURST)] == pytest.approx([0.0] * BURST)


def test_tenants_that_are_calm_are_forgotten() -> None:
    clock = Clock()
    penalty_delay = patient(clock)
    for tenant in range(20 * REMEMBERED):
        clock.now_s += 1.0
        penalty_delay.refused(tenant)
    assert len(penalty_delay._paid_s) <= REMEMBERED + 1
