"""A grid of a tenant's own that nobody runs, whose nodes have said something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import redis

if TYPE_CHECKING:
    from realtime.grid.size import GridSize
    from tests.make import MadeTenant

#: Later than any test ends, in milliseconds.
FAR_AWAY_MS = 1 << 52


@contextmanager
def pretended_grid(
    made: MadeTenant, size: GridSize, valkey_url: str, **figures: object
) -> Iterator[None]:
    from realtime.clusters import epochs
    from realtime.events import layer

    epochs.add(made.tenant.pk, size)
    grid = epochs.in_force(made.tenant.pk)[-1].grid
    epochs.note_ready(grid.epoch)
    report = json.dumps({"state": "running", **figures})
    with redis.Redis.from_url(valkey_url) as valkey:
        for node in grid.nodes():
            key = layer.lease_key(node.installation, node.epoch, node.name)
            valkey.hset(key, mapping={"until": FAR_AWAY_MS, "report": report})
    try:
        yield
    finally:
        epochs.disown(made.tenant.pk)
