"""A fake dedicated grid of a tenant, with notifications of its nodes but no processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import redis

if TYPE_CHECKING:
    from realtime.grid.size import GridSize
    from tests.make import TenantAccount

#: Later than any test ends, in milliseconds.
FAR_AWAY_MS = 1 << 52


@contextmanager
def fake_grid(
    account: TenantAccount, size: GridSize, valkey_url: str, **figures: object
) -> Iterator[None]:
    from realtime.clusters import epochs
    from realtime.events import layer

    epochs.add(account.tenant.pk, size)
    grid = epochs.dedicated_epochs(account.tenant.pk)[-1].grid
    epochs.note_ready(grid.epoch)
    report = json.dumps({"state": "running", **figures})
    with redis.Redis.from_url(valkey_url) as valkey:
        for node in grid.nodes():
            key = layer.lease_key(node.prefix, node.epoch, node.name)
            valkey.hset(key, mapping={"until": FAR_AWAY_MS, "report": report})
    try:
        yield
    finally:
        epochs.disown(account.tenant.pk)
