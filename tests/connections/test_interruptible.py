"""How interrupted work ends."""

from __future__ import annotations

import asyncio

import pytest

from connections.interruptible import Interruptible


async def test_interrupted_work_ends_and_its_task_continues() -> None:
    work = Interruptible()
    asyncio.get_running_loop().call_soon(work.interrupt)
    await work.run(asyncio.sleep(3600))
    await asyncio.sleep(0)


async def test_an_interruption_at_the_moment_of_completion_does_not_affect_later_work() -> None:
    work = Interruptible()

    async def interrupt_and_fail() -> None:
        work.interrupt()
        raise LookupError

    with pytest.raises(LookupError):
        await work.run(interrupt_and_fail())
    await asyncio.sleep(0)
    work.interrupt()
    await asyncio.sleep(0)


async def test_a_cancellation_by_others_ends_the_task() -> None:
    work = Interruptible()
    task = asyncio.create_task(work.run(asyncio.sleep(3600)))
    await asyncio.sleep(0)
    work.interrupt()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
