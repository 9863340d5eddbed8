"""Runs a background service's event loop in a thread, beside a blocking test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from tests.background_service import running_service

if TYPE_CHECKING:
    from rillbase_server.processes.supervision import BackgroundService

S = TypeVar("S", bound="BackgroundService")


@contextmanager
def running(make: Callable[[], S]) -> Iterator[S]:
    """Run a service on a separate event loop, as its process would."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    service = _serving(make)
    try:
        yield asyncio.run_coroutine_threadsafe(service.__aenter__(), loop).result(60)
    finally:
        asyncio.run_coroutine_threadsafe(service.__aexit__(None, None, None), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@asynccontextmanager
async def _serving(make: Callable[[], S]) -> AsyncIterator[S]:
    """Run a service, and close everything that it has opened for this loop, as its process does at
    the end.
    """
    # Imported here because settings need the environment.
    from documents.outbox import publisher
    from documents.outbox.database import close_relay_pool
    from documents.store.database import close_pool
    from storage_engine.node import client as node_client

    async with running_service(make()) as service:
        yield service
    for close in (publisher.close, close_pool, node_client.close, close_relay_pool):
        await close()
