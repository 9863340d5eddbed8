"""Work that can be ended from outside, while the task that does it continues."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable


class Interruptible:
    """Runs one piece of work, which `interrupt` ends. Takes no task of its own."""

    __slots__ = ("_is_interrupted", "_task")

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._is_interrupted = False

    async def run(self, work: Awaitable[None]) -> None:
        """Do the work, until it ends or is interrupted. A cancellation by others is raised."""
        self._task = asyncio.current_task()
        try:
            await work
        except asyncio.CancelledError:
            if not self._is_interrupted:
                raise
        finally:
            task, self._task = self._task, None
            if self._is_interrupted and task is not None:
                # The cancellation may not have arrived yet, if the work ended at the same moment.
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)
                if task.uncancel() > 0:
                    raise asyncio.CancelledError

    def interrupt(self) -> None:
        """End the work, if it is running."""
        if self._task is not None and not self._is_interrupted:
            self._is_interrupted = True
            self._task.cancel()
