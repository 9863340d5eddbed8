"""Converts small rows on the event loop in steps, and large ones on a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TypeVar
from uuid import UUID

from foundation.event_loop_budget import EventLoopBudget
from sources.following import fair_share

#: Rows below this size take at most a few milliseconds.
MAX_BYTES = 256 * 1024
T = TypeVar("T")


async def converted(source: UUID, size: int, steps: Iterable[T]) -> list[T]:
    """Return the results of pure work on `size` bytes; large work runs on a thread."""
    if size > MAX_BYTES:
        return await on_thread(source, lambda: list(steps))
    budget = EventLoopBudget()
    results = []
    for step in steps:
        results.append(step)
        await budget.yield_if_spent()
    return results


async def on_thread(source: UUID, work: Callable[[], T]) -> T:
    """Return the result of pure work run on a thread, charged to the source."""
    spent_s = 0.0

    def timed() -> T:
        nonlocal spent_s
        start_s = time.thread_time()
        try:
            return work()
        finally:
            spent_s = time.thread_time() - start_s

    try:
        return await asyncio.to_thread(timed)
    finally:
        fair_share.sources.charge(source, spent_s)
