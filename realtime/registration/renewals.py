"""Reads queries again for sort nodes that no longer know the rows after a window.

The read is done by a worker, so that a busy query cannot take the app server's connections. The
rate is limited for each query and for all of them together; a rejected hub asks again when there is
room.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from uuid import UUID

from redis.exceptions import RedisError

from documents.outbox.database import close_relay_pool
from documents.store.database import close_pool
from foundation import event_server
from foundation.errors import ApiError
from foundation.limits import Limit
from foundation.tasks import task
from foundation.tasks.app import app
from foundation.tasks.definition import PERIODIC
from realtime.events.layer import GridLayer
from realtime.grid.layout import GridEpoch, read_grid
from realtime.registration.registration import CollectionReference, RulesChanged, register
from rillbase_native import LiveQuery

log = logging.getLogger(__name__)

TASK = "realtime.renew"
QUERY_PER_S, QUERY_BURST = 1.0, 3
ALL_PER_S, ALL_BURST = 50.0, 100


def limits(query: bytes) -> list[Limit]:
    """Return the limits of one renewal."""
    return [Limit("renewal", query.hex(), QUERY_PER_S, QUERY_BURST), of_all()]


def of_all() -> Limit:
    """Return the common limit of all requests of nodes."""
    return Limit("renewals", "all", ALL_PER_S, ALL_BURST)


def dispatch(hub: str, epoch: int, query: LiveQuery, source: CollectionReference) -> None:
    """Pass a renewal to a worker. Blocks, and raises the exceptions of the broker's client."""
    arguments = {
        "hub": hub,
        "epoch": epoch,
        "definition": query.definition().hex(),
        "tenant_id": str(source.tenant_id),
        "collection": source.collection,
    }
    app.send_task(TASK, kwargs=arguments, retry=False)


@task(name=TASK, policy=PERIODIC, quiet=True)
def renew(hub: str, epoch: int, definition: str, tenant_id: str, collection: str) -> None:
    """Read a query's rows again and send them to the nodes.

    They repeat the request if this fails.
    """
    query = LiveQuery.read(bytes.fromhex(definition))
    source = CollectionReference(UUID(tenant_id), collection)

    async def work(layer: GridLayer, grid: GridEpoch) -> None:
        await register(layer, grid, hub, query, source, renewal=True)

    try:
        asyncio.run(send_to_grids(epoch, work))
    except (ApiError, RulesChanged, RedisError) as error:
        log.info("a query was not renewed: %s", error)


async def send_to_grids(
    epoch: int, work: Callable[[GridLayer, GridEpoch], Awaitable[None]]
) -> None:
    """Send something to the nodes of a grid epoch, in a process without open connections."""
    try:
        for grid in await read_grid(epoch):
            await work(grid.layer(event_server.wire()), grid)
    finally:
        await event_server.close()
        await close_pool()
        await close_relay_pool()
