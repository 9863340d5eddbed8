"""A tenant's lane starts every write, whenever it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import pytest

from documents.store import writer
from documents.store.attempt import Ended
from documents.store.write import WriteCall, WriteResult
from documents.store.writer import GROUPS_AT_ONCE, Lane
from rillbase_native import Operation, Operations, Outcomes, Value

TENANT = uuid4()


def a_write() -> WriteCall:
    return WriteCall(TENANT, "things", Operations([Operation.insert(Value.parse(b'{"a": 1}'))]))


@pytest.fixture
def let_groups_end(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Every group ends as soon as this is set, all in one turn of the event loop."""
    ends = asyncio.Event()

    async def run_group(_: UUID, writes: list[WriteCall]) -> list[Ended]:
        await ends.wait()
        return [WriteResult(Outcomes()) for _ in writes]

    monkeypatch.setattr(writer, "run_group", run_group)
    return ends


async def one_group_each(lane: Lane, then: Callable[[], Awaitable[None]]) -> list[asyncio.Task[None]]:
    """Start as many groups as a lane runs at once; `then` follows each group's result."""

    async def write() -> None:
        await lane.submit(a_write())
        await then()

    callers = []
    for _ in range(GROUPS_AT_ONCE):
        callers.append(asyncio.create_task(write()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return callers


def test_a_write_that_arrives_as_all_groups_end_is_started(let_groups_end: asyncio.Event) -> None:
    async def scenario() -> None:
        lane = Lane(TENANT)

        async def write_again() -> None:
            await asyncio.wait_for(lane.submit(a_write()), 5)

        callers = await one_group_each(lane, write_again)
        let_groups_end.set()
        await asyncio.gather(*callers)

    asyncio.run(scenario())


def test_a_lane_is_idle_once_its_callers_have_their_results(let_groups_end: asyncio.Event) -> None:
    async def scenario() -> list[bool]:
        lane = Lane(TENANT)
        idle: list[bool] = []

        async def look() -> None:
            idle.append(lane.idle)

        callers = await one_group_each(lane, look)
        let_groups_end.set()
        await asyncio.gather(*callers)
        return idle

    assert asyncio.run(scenario()) == [True] * GROUPS_AT_ONCE
