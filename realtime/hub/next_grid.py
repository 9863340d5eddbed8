"""Moves hubs to the next grid epoch, when the grid is resized or restarted. A new epoch receives
every write as soon as it is in the list, in addition to its predecessors. A hub stays with its grid
until all nodes of the newest one are ready, or until its grid is retired and receives nothing any
more. A tenant's dedicated grids have a separate hub, which follows them as the process's other hub
follows the shared ones.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from foundation import event_server
from realtime.grid.layout import GridEpoch


def next_grid(
    grids: Sequence[GridEpoch], now: GridEpoch, *, newest_watches: bool
) -> GridEpoch | None:
    """Return the grid to follow from now on; None: the same."""
    if not grids or grids[-1] == now:
        return None
    return grids[-1] if newest_watches or now not in grids else None


async def find_next_grid(grids: Sequence[GridEpoch], now: GridEpoch) -> GridEpoch | None:
    """Check whether there is another grid to follow. May raise `RedisError`."""
    watches = grids[-1:] != [now] and await _watches(grids)
    return next_grid(grids, now, newest_watches=watches)


async def _watches(grids: Sequence[GridEpoch]) -> bool:
    """Return whether all nodes of the newest grid hold their leases and are ready."""
    if not grids:
        return False
    newest = grids[-1]
    layer = newest.layer(event_server.wire())
    names = [node.name for node in newest.nodes()]
    time_us, leases = await layer.leases(names)
    reports = [
        json.loads(node.report or b"{}")
        for node in leases.values()
        if node.until_ms * 1000 > time_us
    ]
    return len(reports) == len(names) and all(
        report.get("state") == "running" for report in reports
    )
