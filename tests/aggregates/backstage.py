"""What keeps views, beside the server: a relay and a follower, each on its own thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Protocol


class Starts(Protocol):
    """A loop that is started and stopped."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


@contextmanager
def running(made: type[Starts]) -> Iterator[Starts]:
    """Run one on an event loop of its own, as a process would."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def do(work: Coroutine[object, object, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(60)

    found = _make(made, loop)
    do(found.start())
    try:
        yield found
    finally:
        do(found.stop())
        do(_let_go())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _let_go() -> None:
    """Close what writing has opened for this loop, as a process does at its end."""
    # Settings can be imported once there is an environment.
    from documents.outbox import publisher
    from documents.store.database import close_pool

    await publisher.close()
    await close_pool()


def _make(made: type[Starts], loop: asyncio.AbstractEventLoop) -> Starts:
    async def make() -> Starts:
        return made()

    return asyncio.run_coroutine_threadsafe(make(), loop).result(60)
