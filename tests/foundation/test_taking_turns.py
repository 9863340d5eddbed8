"""A party with much work does not delay others, and a party that is alone is not slowed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from foundation.bulk_budget import BulkBudget
from foundation.contention import WINDOW_S, Contention
from foundation.event_loop_budget import BUDGET_S, EventLoopBudget
from foundation.turns import TurnScheduler
from tests.waiting import until


@dataclass
class Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


class ConstantContention(Contention):
    """Contention, as if another party were always active."""

    @property
    def is_contended(self) -> bool:
        return True


def test_one_active_tenant_is_no_contention() -> None:
    contention = Contention(Clock())
    for _ in range(3):
        contention.record("a")
    assert not contention.is_contended


def test_two_active_tenants_contend_until_one_is_idle_for_the_window() -> None:
    clock = Clock()
    contention = Contention(clock)
    contention.record("a")
    contention.record("b")
    assert contention.is_contended
    clock.now_s += WINDOW_S
    contention.record("b")
    assert not contention.is_contended


async def test_long_work_yields_whenever_its_budget_is_spent() -> None:
    clock = Clock()
    budget, order = EventLoopBudget(clock), list[str]()

    async def work() -> None:
        for number in range(4):
            order.append(f"work {number}")
            clock.now_s += 0.6 * BUDGET_S
            await budget.yield_if_spent()

    async def other() -> None:
        order.append("other")

    await asyncio.gather(work(), other())
    assert order == ["work 0", "work 1", "other", "work 2", "work 3"]


async def test_a_party_with_many_turns_delays_only_itself() -> None:
    turns, on = TurnScheduler(4, 2, BulkBudget(Contention())), asyncio.Event()
    having: list[str] = []

    async def have(whose: str) -> None:
        async with turns.turn(whose):
            having.append(whose)
            await on.wait()

    many = [asyncio.create_task(have("greedy")) for _ in range(100)]
    await until(lambda: len(having) == 2, "the greedy one to have its share")
    one = asyncio.create_task(have("modest"))
    await until(lambda: "modest" in having, "the other one to have a turn")
    assert having.count("greedy") == 2
    on.set()
    await asyncio.gather(one, *many)
    assert having.count("greedy") == 100


async def test_under_contention_a_place_stays_unused_after_a_turn() -> None:
    turns = TurnScheduler(1, 1, BulkBudget(ConstantContention()), rests=3.0)
    order: list[str] = []

    async def have(whose: str) -> None:
        async with turns.turn(whose):
            order.append(whose)
            await asyncio.sleep(0.01)

    await asyncio.gather(have("greedy"), have("greedy"), have("modest"))
    assert order == ["greedy", "modest", "greedy"]


async def test_under_contention_a_long_turn_leaves_a_place_for_others() -> None:
    turns, on = TurnScheduler(2, 1, BulkBudget(ConstantContention())), asyncio.Event()
    having: list[str] = []

    async def have(whose: str) -> None:
        async with turns.turn(whose):
            having.append(whose)
            await on.wait()

    tasks = [asyncio.create_task(have(whose)) for whose in ("slow", "slow", "quick")]
    await until(lambda: "quick" in having, "the other one to have a turn")
    assert having == ["slow", "quick"]
    on.set()
    await asyncio.gather(*tasks)


async def test_a_cancelled_wait_for_a_turn_loses_no_turn() -> None:
    turns, on = TurnScheduler(1, 1, BulkBudget(Contention())), asyncio.Event()

    async def have() -> None:
        async with turns.turn("a"):
            await on.wait()

    first, second = asyncio.create_task(have()), asyncio.create_task(have())
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    on.set()
    await first
    async with asyncio.timeout(10), turns.turn("a"):
        pass
