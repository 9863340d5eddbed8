"""Long computations of an event loop, in slices."""

from __future__ import annotations

import asyncio
import threading
import time
from itertools import count

import pytest

from foundation.time_slices import Pause, run_in_slices


def add(numbers: int, pause: Pause) -> int:
    total = 0
    for number in range(numbers):
        pause()
        total += number
    return total


async def test_the_result_is_that_of_the_work() -> None:
    assert await run_in_slices("tenant", lambda pause: add(100, pause)) == 4950


async def test_an_error_of_the_work_is_raised() -> None:
    def fail(pause: Pause) -> None:
        pause()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await run_in_slices("tenant", fail)


async def test_other_tasks_run_between_slices() -> None:
    iterations = count()

    async def other() -> None:
        while True:
            next(iterations)
            await asyncio.sleep(0)

    def compute(pause: Pause) -> None:
        end_s = time.perf_counter() + 0.05
        while time.perf_counter() < end_s:
            pause()

    task = asyncio.create_task(other())
    await run_in_slices("tenant", compute)
    task.cancel()
    # Fifty milliseconds in slices of half a millisecond, on a machine that may be busy.
    assert next(iterations) >= 5


async def test_the_work_computes_only_while_the_loop_waits_for_it() -> None:
    steps = 0

    def compute(pause: Pause) -> None:
        nonlocal steps
        end_s = time.perf_counter() + 0.02
        while time.perf_counter() < end_s:
            steps += 1
            pause()

    task = asyncio.create_task(run_in_slices("tenant", compute))
    while not task.done():
        await asyncio.sleep(0)
        before = steps
        time.sleep(0.001)  # noqa: ASYNC251 -- the thread could run now
        assert steps == before


async def test_a_cancelled_caller_stops_the_work() -> None:
    started, stopped = threading.Event(), threading.Event()

    def compute(pause: Pause) -> None:
        started.set()
        try:
            while True:
                pause()
        finally:
            stopped.set()

    task = asyncio.create_task(run_in_slices("tenant", compute))
    while not started.is_set():  # noqa: ASYNC110 -- a thread sets it
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(stopped.wait, 10)


async def test_computations_run_side_by_side() -> None:
    sums = [run_in_slices(number, lambda pause: add(20_000, pause)) for number in range(9)]
    assert await asyncio.gather(*sums) == [199_990_000] * 9
