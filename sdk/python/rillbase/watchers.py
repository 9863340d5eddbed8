"""Listeners of live queries: each is a task that follows its query."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from rillbase.errors import RillbaseError
from rillbase.listeners import notify
from rillbase.live import Snapshot

log = logging.getLogger("rillbase")

_NOTHING = Snapshot((), "connecting", has_answer=False)


class Watchers:
    """The listeners of one client."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(
        self, source: AsyncIterator[Snapshot], listener: Callable[[Snapshot], object]
    ) -> Callable[[], None]:
        """Call the listener with each snapshot; return a function that stops it."""
        task = asyncio.create_task(_follow(source, listener), name="rillbase-watcher")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return lambda: _stop(task)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()


async def _follow(source: AsyncIterator[Snapshot], listener: Callable[[Snapshot], object]) -> None:
    last = _NOTHING
    try:
        async for last in source:
            notify(listener, last)
    except RillbaseError as error:
        # A listener that reads only documents would never see it.
        log.error("A subscription failed (%s): %s", error.code, error)  # noqa: TRY400
        notify(listener, replace(last, state="failed", error=error))
