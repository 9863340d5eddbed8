"""The store for code that is not asynchronous: tasks, commands, changes of definitions.

Each call has a separate event loop and connections, so it is for batches and not for requests of
the data plane.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from documents.outbox import publisher
from documents.store.database import close_pool
from documents.store.write import WriteCall, WriteResult
from documents.store.writer import write
from storage_engine.node import client

T = TypeVar("T")


def write_all(calls: Sequence[WriteCall]) -> list[WriteResult]:
    """Write durably, one after the other. Raise the error if a whole write is rejected."""
    return run(partial(_write_all, calls))


def run(call: Callable[[], Awaitable[T]]) -> T:
    """Run in a separate event loop."""
    return asyncio.run(_run(call))


async def _run(call: Callable[[], Awaitable[T]]) -> T:
    try:
        return await call()
    finally:
        # In a process that serves, writing has begun to publish from this loop, too.
        await publisher.close()
        await client.close()
        await close_pool()


async def _write_all(calls: Sequence[WriteCall]) -> list[WriteResult]:
    return [await write(call) for call in calls]
