"""Calls that may block forever, in threads that need not be joined."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable


async def call_within(deadline_s: float, work: Callable[[], None]) -> None:
    """Call a function in a thread; raise its exception, or `TimeoutError`. The thread of a call
    that never returns does not prevent the process from exiting, unlike asyncio's own threads.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(failed: BaseException | None) -> None:
        if done.done():
            return
        if failed is None:
            done.set_result(None)
        else:
            done.set_exception(failed)

    def run() -> None:
        failed: BaseException | None = None
        try:
            work()
        except BaseException as error:  # noqa: BLE001 -- it is raised where it is waited for
            failed = error
        # The loop may have been closed: then no caller waits any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, failed)

    threading.Thread(target=run, name="launcher", daemon=True).start()
    async with asyncio.timeout(deadline_s):
        await done
