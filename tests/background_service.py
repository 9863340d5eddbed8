"""Runs background services for the duration of a block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rillbase_server.processes.supervision import BackgroundService

S = TypeVar("S", bound="BackgroundService")


@asynccontextmanager
async def running_service(service: S) -> AsyncIterator[S]:
    """Run a service as its process does. If the service fails, its exception is raised when the
    block ends.
    """
    task = asyncio.create_task(service.run())
    try:
        yield service
    finally:
        if task.done():
            await task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
