"""How much the request log records and keeps."""

from __future__ import annotations

import datetime
from collections.abc import Collection

from foundation.environment import environment

RETENTION = datetime.timedelta(days=1)
#: How many entries of one tenant are kept, and how many bytes, before compression.
MAX_ENTRIES = 100_000
MAX_TENANT_BYTES = 16 * 1024 * 1024
#: How many requests one process records of a tenant and of all tenants in one interval.
MAX_PER_INTERVAL = 2_000
MAX_PENDING = 10_000
#: The part of these for requests that did not fail. Under a flood, failed ones are searched for.
ORDINARY_SHARE = 0.9
#: What a log is reduced to when it is full, so that this happens less often.
KEPT_SHARE = 0.95


def max_bytes() -> int:
    """Return the space for the logs of all tenants; 0: nothing is recorded."""
    return environment().rillbase_request_log_mib * 1024 * 1024


def fair_share(sizes: Collection[int], room: int) -> int:
    """Return the size to which logs are limited so that all of them fit: the larger ones are
    reduced to the same size, and the smaller ones are left alone.
    """
    ordered = sorted(sizes)
    for index, size in enumerate(ordered):
        share = room // (len(ordered) - index)
        if size > share:
            return share
        room -= size
    return max(room, *ordered) if ordered else room
