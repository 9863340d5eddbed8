"""Workers in real processes: their limits, their ends, and what they can access."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from foundation.json_types import JsonObject
from foundation.sandbox.failures import FailureReason, JobFailed
from foundation.sandbox.fair_queue import FairQueue, QueueFull
from foundation.sandbox.limits import JobLimits
from foundation.sandbox.pool import TurnQueue, WorkerPool
from tests.waiting import wait_until

DECODER = "tests.foundation.sandbox.decoders:decode"
MIB = 1024 * 1024
LIMITS = JobLimits(memory_bytes=128 * MIB, cpu_s=1, deadline_s=60, file_bytes=1024)


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    workers = WorkerPool("tests", DECODER, FairQueue(2, 3), idle_s=60)
    yield workers
    await workers.aclose()


async def run(
    pool: WorkerPool, do: str, owner: str = "a", limits: JobLimits = LIMITS, **more: Any
) -> Any:
    async with pool.turn(owner):
        return await pool.run({"do": do, **more}, more.pop("files", []), limits)


async def failure(
    pool: WorkerPool, do: str, limits: JobLimits = LIMITS, **more: Any
) -> FailureReason:
    with pytest.raises(JobFailed) as failed:
        await run(pool, do, limits=limits, **more)
    return failed.value.reason


async def test_each_job_has_a_process_of_its_own(pool: WorkerPool) -> None:
    text = "x" * 300_000
    first, second = await run(pool, "echo", text=text), await run(pool, "echo", text=text)
    assert first["echo"] == second["echo"] == text
    assert first["pid"] != second["pid"]


async def test_memory_and_time_of_a_job_are_bounded(pool: WorkerPool) -> None:
    assert await failure(pool, "allocate", bytes=1024 * MIB) is FailureReason.MEMORY
    assert await failure(pool, "spin") is FailureReason.CPU_TIME
    waiting = JobLimits(128 * MIB, cpu_s=60, deadline_s=0.2, file_bytes=1024)
    assert await failure(pool, "spin", limits=waiting) is FailureReason.DEADLINE
    assert (await run(pool, "allocate", bytes=32 * MIB))["bytes"] == 32 * MIB


async def test_a_crash_is_reported_and_the_next_job_runs(pool: WorkerPool) -> None:
    assert await failure(pool, "crash") is FailureReason.CRASH
    assert await failure(pool, "raise") is FailureReason.CRASH
    assert (await run(pool, "echo", text="on"))["echo"] == "on"


async def test_a_job_that_is_cancelled_is_killed_and_its_slot_is_free(pool: WorkerPool) -> None:
    for _ in range(3):
        ours, its = socket.socketpair()
        with ours, its:
            job = asyncio.create_task(run_with_file(pool, its))
            assert await asyncio.to_thread(ours.recv, 1) == b"r"
            its.close()
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
            assert await asyncio.to_thread(ours.recv, 1) == b"", "the worker still lives"


async def test_a_job_has_low_priority(pool: WorkerPool) -> None:
    ours, its = socket.socketpair()
    with ours, its:
        job = asyncio.create_task(run_with_file(pool, its))
        await asyncio.to_thread(ours.recv, 1)
        descendants = psutil.Process().children(recursive=True)
        assert 19 in {process.nice() for process in descendants}
        ours.send(b"g")
        await job


async def run_with_file(pool: WorkerPool, file: socket.socket, owner: str = "a") -> Any:
    async with pool.turn(owner):
        return await pool.run({"do": "wait"}, [file.fileno()], LIMITS)


async def test_jobs_of_one_owner_do_not_delay_those_of_another(pool: WorkerPool) -> None:
    ours, its = socket.socketpair()
    with ours, its:
        slow = asyncio.create_task(run_with_file(pool, its))
        await asyncio.to_thread(ours.recv, 1)
        others = [asyncio.create_task(run(pool, "echo", text="")) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            await run(pool, "echo", text="")
        assert (await run(pool, "echo", owner="b", text="b"))["echo"] == "b"
        assert not any(other.done() for other in others)
        ours.send(b"g")
        await slow
        await asyncio.gather(*others)


async def test_an_idle_template_exits() -> None:
    pool = WorkerPool("tests", DECODER, FairQueue(1, 1), idle_s=0)
    await run(pool, "echo", text="")
    template = pool._template
    assert template is not None
    process = template._process
    assert await asyncio.to_thread(process.wait, 30) is not None
    assert (await run(pool, "echo", text="again"))["echo"] == "again"
    await pool.aclose()


async def test_a_template_that_is_killed_is_replaced(pool: WorkerPool) -> None:
    await run(pool, "echo", text="")
    assert pool._template is not None
    process = pool._template._process
    process.kill()
    await asyncio.to_thread(process.wait)
    template = pool._template
    await asyncio.to_thread(wait_until, lambda: not template.is_alive, what="the loss to be seen")
    assert (await run(pool, "echo", text="again"))["echo"] == "again"


async def test_a_worker_has_no_secrets_and_reaches_nothing(
    pool: WorkerPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "of the server")
    descriptor = os.open(tmp_path / "output", os.O_WRONLY | os.O_CREAT)
    try:
        async with pool.turn("a"):
            request: JsonObject = {"do": "surroundings", "file_bytes": LIMITS.file_bytes}
            seen = await pool.run(request, [descriptor], LIMITS)
    finally:
        os.close(descriptor)
    environment = set(str(seen["environment"]).split())
    assert "A_SECRET" not in environment
    assert environment.isdisjoint(os.environ.keys() - {"LC_ALL", "LC_CTYPE"})
    reached = {name for name, did in seen.items() if did is True}
    assert reached == set()


async def test_pools_with_one_queue_share_its_slots() -> None:
    queue: TurnQueue = FairQueue(1, 3)
    first = WorkerPool("tests", DECODER, queue, idle_s=60)
    second = WorkerPool("tests", DECODER, queue, idle_s=60)
    async with first.turn("a"):
        waiting = asyncio.ensure_future(run(second, "echo", text="later", owner="b"))
        await asyncio.sleep(0)
        assert queue.waiting == 1
        assert not waiting.done()
    assert (await waiting)["echo"] == "later"
    assert queue.is_idle
    for pool in (first, second):
        await pool.aclose()


async def test_a_worker_with_threads_before_it_is_confined_does_no_job(tmp_path: Path) -> None:
    """The kernel would confine only the thread that asks for it."""
    work = "tests.foundation.sandbox.hasty:work"
    pool = WorkerPool("tests", work, FairQueue(2, 3), idle_s=60)
    try:
        async with pool.session(LIMITS, tmp_path, tmp_path) as session:
            with pytest.raises(JobFailed):
                await session.ask({})
    finally:
        await pool.aclose()
