"""Bulk work takes a bounded share of the event loop while other tenants are active."""

from __future__ import annotations

import asyncio
import gc
import weakref
from dataclasses import dataclass

import pytest

from foundation.bulk_budget import (
    LONGEST_DEBT_S,
    SHARE_OF_ALL,
    SHARE_OF_ONE,
    TOLERANCE_S,
    BulkBudget,
    FreeTime,
)
from foundation.contention import Contention


@dataclass
class Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


class ConstantContention(Contention):
    """Contention, as if another tenant were always active."""

    @property
    def is_contended(self) -> bool:
        return True


def test_a_tenant_that_is_alone_never_waits() -> None:
    budget = BulkBudget(Contention())
    budget.charge("a", 1.0)
    assert budget.wait_s("a") == 0


def test_under_contention_a_tenants_bulk_work_takes_no_more_than_its_share() -> None:
    clock = Clock()
    budget = BulkBudget(ConstantContention(), clock)
    begun_s, spent_s = clock.now_s, 0.0
    while clock.now_s < begun_s + 60:
        clock.now_s += budget.wait_s("a")
        budget.charge("a", 0.002)
        clock.now_s += 0.002
        spent_s += 0.002
    assert spent_s / 60 == pytest.approx(SHARE_OF_ONE, rel=0.1)


def test_all_bulk_work_together_takes_a_bounded_share() -> None:
    clock = Clock()
    budget = BulkBudget(ConstantContention(), clock)
    tenants = [f"tenant {number}" for number in range(20)]
    begun_s, spent_s = clock.now_s, 0.0
    while clock.now_s < begun_s + 60:
        for tenant in tenants:
            if not budget.wait_s(tenant):
                budget.charge(tenant, 0.002)
                spent_s += 0.002
        clock.now_s += 0.005
    assert spent_s / 60 <= 1.2 * SHARE_OF_ALL


def test_a_tenant_without_debts_does_not_wait_for_those_of_others() -> None:
    budget = BulkBudget(ConstantContention(), Clock())
    for number in range(50):
        budget.charge(f"greedy {number}", 5.0)
    assert budget.wait_s("modest") == 0
    budget.charge("modest", SHARE_OF_ALL * TOLERANCE_S / 60)
    assert budget.wait_s("modest") == 0


def test_no_debt_keeps_a_tenant_waiting_for_very_long() -> None:
    budget = BulkBudget(ConstantContention(), Clock())
    budget.charge("a", 1_000.0)
    assert budget.wait_s("a") == LONGEST_DEBT_S


async def test_work_is_charged_with_its_own_steps_and_not_with_what_it_waits_for() -> None:
    clock = Clock()
    budget = BulkBudget(ConstantContention(), clock, cpu_s=clock)

    answered = asyncio.Event()

    async def work() -> str:
        clock.now_s += 0.001
        await answered.wait()
        clock.now_s += 0.001
        return "done"

    async def others() -> None:
        clock.now_s += 10.0
        answered.set()

    done, _ = await asyncio.gather(budget.metered("a", work()), others())
    assert done == "done"
    assert 0 < budget.wait_s("a") < 0.1


async def test_metered_work_within_metered_work_is_charged_once() -> None:
    clock, charged = Clock(), list[float]()
    budget = BulkBudget(Contention(), clock, cpu_s=clock)
    charge = budget.charge

    def recorded(tenant: object, spent_s: float) -> None:
        charged.append(spent_s)
        charge(tenant, spent_s)

    budget.charge = recorded  # type: ignore[method-assign]

    async def inner() -> None:
        clock.now_s += 0.25
        await asyncio.sleep(0)
        clock.now_s += 0.25

    async def outer() -> None:
        clock.now_s += 0.5
        await budget.metered("a", inner())
        await asyncio.sleep(0)
        clock.now_s += 0.5

    await budget.metered("a", outer())
    assert sum(charged) == pytest.approx(1.5)


async def test_free_time_is_not_charged() -> None:
    clock = Clock()
    budget = BulkBudget(ConstantContention(), clock, cpu_s=clock)
    free = FreeTime(0.5)

    async def work(took_s: float) -> None:
        clock.now_s += took_s

    await budget.metered("a", work(0.25), free)
    assert (budget.wait_s("a"), free.is_used) == (0.0, False)
    await budget.metered("a", work(0.3), free)
    assert free.is_used
    assert budget.wait_s("a") == pytest.approx(0.05 / SHARE_OF_ONE)


async def test_pieces_that_wait_continue_one_by_one_as_each_is_paid_for() -> None:
    budget, continued = BulkBudget(ConstantContention(), of_one=0.1, of_all=0.1), list[int]()
    waits = list[float]()

    async def piece(number: int) -> None:
        await budget.wait("a")
        continued.append(number)
        waits.append(budget.wait_s("a"))
        budget.charge("a", 0.001)

    budget.charge("a", 0.001)
    await asyncio.gather(*map(piece, range(5)))
    assert continued == list(range(5))
    assert waits == [0.0] * 5


async def test_a_cancelled_piece_does_not_keep_those_behind_it_waiting() -> None:
    budget = BulkBudget(ConstantContention(), of_one=0.1, of_all=0.1)
    budget.charge("a", 0.001)
    first, second = (asyncio.create_task(budget.wait("a")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    async with asyncio.timeout(10):
        await second


async def test_metered_work_raises_what_it_raises_and_can_be_cancelled() -> None:
    budget, cleaned = BulkBudget(Contention()), list[str]()

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("as without a meter")

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("yes")

    with pytest.raises(ValueError, match="as without a meter"):
        await budget.metered("a", fails())
    task = asyncio.create_task(budget.metered("a", waits()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["yes"]


async def test_cancelled_work_releases_its_resources_immediately() -> None:
    class Message:
        """A large object."""

    async def read(message: Message) -> None:
        await asyncio.Event().wait()
        raise AssertionError(message)

    message = Message()
    released = weakref.ref(message)
    task = asyncio.create_task(BulkBudget(Contention()).metered("a", read(message)))
    del message
    await asyncio.sleep(0)
    gc.collect()
    gc.disable()
    try:
        task.cancel()
        await asyncio.wait([task])
        del task
        assert released() is None
    finally:
        gc.enable()
