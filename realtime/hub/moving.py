"""From one grid epoch to the next, when the grid is resized or begins anew.

A new epoch gets every write from the moment at which it is in the list, beside those before it.
A hub stays with its own until all nodes of the newest one watch, or until its own is retired: then
nobody would tell it anything any more.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import psycopg
from redis.exceptions import RedisError

from realtime import valkey
from realtime.events.layer import GridLayer
from realtime.grid.layout import Grid, read_grids

if TYPE_CHECKING:
    from realtime.hub.process import Running

log = logging.getLogger(__name__)

LOOK_S = 1.0


def next_grid(grids: Sequence[Grid], now: Grid, *, newest_watches: bool) -> Grid | None:
    """Return which grid to follow from here on; None: the same."""
    if not grids or grids[-1] == now:
        return None
    return grids[-1] if newest_watches or now not in grids else None


async def keep_following(running: Running) -> None:
    """Move to the newest grid whenever there is another one."""
    while True:
        await asyncio.sleep(LOOK_S)
        try:
            grids = await read_grids()
            watches = grids[-1:] != [running.grid] and await _watches(grids)
            found = next_grid(grids, running.grid, newest_watches=watches)
            if found is not None:
                log.info("following grid epoch %d instead of %d", found.epoch, running.grid.epoch)
                await running.move(found)
        except (psycopg.Error, RedisError, OSError) as away:
            log.debug("nobody can say which grid there is: %s", away)


async def _watches(grids: Sequence[Grid]) -> bool:
    """Tell whether all nodes of the newest grid hold their leases and watch."""
    if not grids:
        return False
    newest = grids[-1]
    layer = GridLayer(valkey.wire(), newest.installation, newest.epoch)
    names = [node.name for node in newest.nodes()]
    time_us, held = await layer.look(names)
    reports = [
        json.loads(node.report or b"{}") for node in held.values() if node.until_ms * 1000 > time_us
    ]
    return len(reports) == len(names) and all(one.get("state") == "running" for one in reports)
