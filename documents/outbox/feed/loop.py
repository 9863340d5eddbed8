"""Runs the feed while this process's relay holds the lease.

The grid of native collections is created with the first of them: an installation without any runs
no nodes for them, and its log is not read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

import psycopg

from documents.outbox.database import relay_pool
from documents.outbox.feed.publisher import FeedInterrupted, FeedPublisher
from documents.outbox.feed.servers import ConnectedServers
from foundation.environment import environment
from foundation.errors import ApiError
from foundation.postgres import Statement
from foundation.valkey_wire import ValkeyWire

logger = logging.getLogger(__name__)

#: How often the grid epochs are read, and how long a feed pauses that was interrupted.
REFRESH_S, PAUSE_S = 1.0, 0.1
CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S = 2.0, 10.0

#: A grid for native collections, with one filter node and one sort node, if there are any.
_ADD_GRID = Statement(
    "INSERT INTO documents_gridepoch (number, write_partitions, backend) "
    "SELECT nextval('documents_tenantgrid'), 1, 'native' "
    "WHERE EXISTS (SELECT FROM documents_collection WHERE backend = 'native' "
    "OR move_stage <> '') "
    "AND NOT EXISTS (SELECT FROM documents_gridepoch WHERE backend = 'native' "
    "AND retired_at IS NULL) ON CONFLICT DO NOTHING"
)
_GRIDS = Statement(
    "SELECT (SELECT epoch FROM documents_installation), "
    "(SELECT string_agg(number || ':' || write_partitions, ' ' ORDER BY number) "
    "FROM documents_gridepoch WHERE retired_at IS NULL AND backend = 'native')"
)


class FeedTarget(NamedTuple):
    """What the feed fills."""

    installation: int
    token: int
    #: The grid epochs, as the event layer reads them.
    epochs: str


class FeedLoop:
    """The feed of the storage node. `token` returns that of the relay's lease, while it has it."""

    def __init__(self, token: Callable[[], int | None]) -> None:
        self._token = token
        self._target: FeedTarget | None = None
        self._reason = ""
        self._wire = ValkeyWire(
            environment().events,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            answer_timeout_s=ANSWER_TIMEOUT_S,
        )

    def status(self) -> dict[str, object]:
        """Describe the state, for operators."""
        return {"publishing": self._target is not None, "unavailable": self._reason or None}

    async def run(self) -> None:
        """Publish until cancelled."""
        if not environment().storage_url:
            return
        refreshing = asyncio.create_task(self._refresh_repeatedly(), name="grids of the feed")
        try:
            while True:
                if self._target is not None:
                    await self._publish(self._target)
                await asyncio.sleep(PAUSE_S)
        finally:
            refreshing.cancel()
            await asyncio.gather(refreshing, return_exceptions=True)
            await self._wire.aclose()

    async def _refresh_repeatedly(self) -> None:
        while True:
            started_s = time.monotonic()
            try:
                self._target = await self._read_target()
            except (psycopg.Error, OSError) as error:
                logger.debug("the grids of native collections cannot be read: %s", error)
            await asyncio.sleep(max(0.0, started_s + REFRESH_S - time.monotonic()))

    async def _read_target(self) -> FeedTarget | None:
        token = self._token()
        if token is None:
            return None
        async with relay_pool().session() as session:
            _, grids = await session.run([(_ADD_GRID, ()), (_GRIDS, ())])
        if grids.raw(0, 1) is None:
            return None
        return FeedTarget(grids.integer(0, 0), token, grids.text(0, 1))

    async def _publish(self, target: FeedTarget) -> None:
        """Publish until the target changes, or until something fails."""
        servers = ConnectedServers(self._wire, target.installation, target.token, target.epochs)
        publisher = FeedPublisher(servers, target.epochs)

        def should_continue() -> bool:
            self._reason = ""
            return self._target == target

        try:
            await publisher.run(should_continue)
        except (FeedInterrupted, ApiError) as error:
            if self._reason != str(error):
                logger.warning("the feed of native collections waits: %s", error)
            self._reason = str(error)
        except Exception as error:
            if self._reason != str(error):
                logger.exception("the feed of native collections failed")
            self._reason = str(error)
        finally:
            servers.close()
