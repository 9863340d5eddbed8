"""Writing documents from code that is not asynchronous: tasks and commands.

Each call has a separate event loop and connections, so it is for batches and not for requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from documents.outbox import publisher
from documents.store.database import close_pool
from documents.store.write import WriteCall, WriteResult
from documents.store.writer import write


def write_all(calls: Sequence[WriteCall]) -> list[WriteResult]:
    """Write durably, one after the other. Raise the error if a whole write is rejected."""
    return asyncio.run(_write_all(calls))


async def _write_all(calls: Sequence[WriteCall]) -> list[WriteResult]:
    try:
        return [await write(call) for call in calls]
    finally:
        # In a process that serves, writing has begun to publish from this loop, too.
        await publisher.close()
        await close_pool()
