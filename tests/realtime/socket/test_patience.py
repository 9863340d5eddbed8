"""Whoever is refused again and again is read more slowly, and only that tenant."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from foundation.company import Company
from realtime.socket.patience import (
    BURST,
    REFUSALS_PER_S,
    REFUSALS_PER_S_IN_COMPANY,
    REMEMBERED,
    Patience,
)


@dataclass
class Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


def patient(clock: Clock, company: Company | None = None) -> Patience:
    """Return the patience with whoever is alone, unless there is company."""
    return Patience(company or Company(clock), clock)


def test_a_burst_of_refusals_costs_nobody_time() -> None:
    patience = patient(Clock())
    assert [patience.refused("a") for _ in range(BURST)] == pytest.approx([0.0] * BURST)


def test_beyond_a_burst_refusals_come_no_faster_than_they_may() -> None:
    clock = Clock()
    patience = patient(clock)
    for _ in range(BURST + 5_000):
        clock.now_s += patience.refused("a")
    assert abs(clock.now_s - (100.0 + 5_000 / REFUSALS_PER_S)) < 0.01


def test_beside_others_refusals_come_more_slowly() -> None:
    clock = Clock()
    company = Company(clock)
    patience = patient(clock, company)
    for _ in range(BURST + 1_000):
        company.seen("a")
        company.seen("b")
        clock.now_s += patience.refused("a")
    assert clock.now_s - 100.0 > 1_000 / REFUSALS_PER_S_IN_COMPANY


def test_others_are_not_slowed_down() -> None:
    patience = patient(Clock())
    while patience.refused("a") < 1 / REFUSALS_PER_S:
        pass
    assert patience.refused("b") == 0.0


def test_after_a_calm_time_there_may_be_a_burst_again() -> None:
    clock = Clock()
    patience = patient(clock)
    while patience.refused("a") < 1 / REFUSALS_PER_S:
        pass
    clock.now_s += 1.0
    assert [patience.refused("a") for _ in range(BURST)] == pytest.approx([0.0] * BURST)


def test_tenants_that_are_calm_are_forgotten() -> None:
    clock = Clock()
    patience = patient(clock)
    for tenant in range(20 * REMEMBERED):
        clock.now_s += 1.0
        patience.refused(tenant)
    assert len(patience._paid_s) <= REMEMBERED + 1
