"""Nobody who asks for very much keeps others waiting, and whoever is alone loses nothing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from foundation.bulk_budget import BulkBudget
from foundation.company import LATELY_S, Company
from foundation.slices import SLICE_S, Slices
from foundation.turns import Turns
from tests.waiting import until


@dataclass
class Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


class Shared(Company):
    """Somebody else is always there."""

    @property
    def is_shared(self) -> bool:
        return True


def test_whoever_is_served_alone_has_no_company() -> None:
    company = Company(Clock())
    for _ in range(3):
        company.seen("a")
    assert not company.is_shared


def test_two_who_are_served_in_turns_are_in_company_until_one_has_gone() -> None:
    clock = Clock()
    company = Company(clock)
    company.seen("a")
    company.seen("b")
    assert company.is_shared
    clock.now_s += LATELY_S
    company.seen("b")
    assert not company.is_shared


async def test_long_work_lets_others_have_their_turn_between_its_slices() -> None:
    clock = Clock()
    slices, order = Slices(clock), list[str]()

    async def work() -> None:
        for number in range(4):
            order.append(f"work {number}")
            clock.now_s += 0.6 * SLICE_S
            await slices.breathe()

    async def other() -> None:
        order.append("other")

    await asyncio.gather(work(), other())
    assert order == ["work 0", "work 1", "other", "work 2", "work 3"]


async def test_who_asks_for_very_much_waits_for_itself_only() -> None:
    turns, on = Turns(4, 2, BulkBudget(Company())), asyncio.Event()
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


async def test_in_company_a_place_rests_after_a_turn_and_others_have_theirs() -> None:
    turns = Turns(1, 1, BulkBudget(Shared()), rests=3.0)
    order: list[str] = []

    async def have(whose: str) -> None:
        async with turns.turn(whose):
            order.append(whose)
            await asyncio.sleep(0.01)

    await asyncio.gather(have("greedy"), have("greedy"), have("modest"))
    assert order == ["greedy", "modest", "greedy"]


async def test_in_company_a_long_turn_leaves_room_for_somebody_else() -> None:
    turns, on = Turns(2, 1, BulkBudget(Shared())), asyncio.Event()
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


async def test_a_turn_that_is_given_up_while_waiting_is_lost_to_nobody() -> None:
    turns, on = Turns(1, 1, BulkBudget(Company())), asyncio.Event()

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
