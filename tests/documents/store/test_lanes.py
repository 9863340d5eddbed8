"""A tenant's lane starts every write, whenever it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar
from uuid import UUID, uuid4

import pytest

from documents.store import writer
from documents.store.write import WriteCall, WriteResult
from documents.store.writer import GROUPS_AT_ONCE, Lane
from rillbase_native import Operation, Operations, Outcomes, Value

T = TypeVar("T")
TENANT = uuid4()


def a_write() -> WriteCall:
    return WriteCall(TENANT, "things", Operations([Operation.insert(Value.parse(b'{"a": 1}'))]))


@pytest.fixture
def let_groups_end(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Every group ends as soon as this is set, all in one turn of the event loop."""
    released = asyncio.Event()

    async def run_group(_: UUID, writes: list[WriteCall]) -> list[WriteResult]:
        await released.wait()
        return [WriteResult(Outcomes()) for _ in writes]

    monkeypatch.setattr(writer, "run_group", run_group)
    return released


async def start_groups(*callers: Coroutine[None, None, T]) -> list[asyncio.Task[T]]:
    """Start callers one after the other, so that each one's write gets a group of its own."""
    assert len(callers) == GROUPS_AT_ONCE
    tasks = []
    for caller in callers:
        tasks.append(asyncio.create_task(caller))
        # One turn for the caller, and one for the group that it starts.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return tasks


def test_a_write_that_arrives_as_all_groups_end_is_started(let_groups_end: asyncio.Event) -> None:
    async def scenario() -> None:
        lane = Lane(TENANT)

        async def write(times: int) -> None:
            for _ in range(times):
                await lane.submit(a_write())

        callers = await start_groups(write(2), *(write(1) for _ in range(GROUPS_AT_ONCE - 1)))
        let_groups_end.set()
        await asyncio.wait_for(asyncio.gather(*callers), 5)

    asyncio.run(scenario())


def test_a_lane_is_idle_once_its_callers_have_their_results(let_groups_end: asyncio.Event) -> None:
    async def scenario() -> list[bool]:
        lane = Lane(TENANT)

        async def write() -> bool:
            await lane.submit(a_write())
            return lane.idle

        callers = await start_groups(*(write() for _ in range(GROUPS_AT_ONCE)))
        let_groups_end.set()
        return await asyncio.gather(*callers)

    assert asyncio.run(scenario()) == [True] * GROUPS_AT_ONCE
