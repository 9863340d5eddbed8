"""The workers of a web server. This module loads no columnar library."""

from __future__ import annotations

from foundation.environment import environment
from foundation.per_loop import PerLoop
from foundation.sandbox.fair_queue import FairQueue
from foundation.sandbox.pool import WorkerPool

#: Maximum number of a tenant's statements waiting for a worker of one web server.
MAX_WAITING = 100
#: Starting the process that forks workers takes a second.
_IDLE_S = 600.0
_WORK = "analytics.sql.worker:execute"


def _new_pool() -> WorkerPool:
    slots = environment().rillbase_sql_workers
    return WorkerPool("sql", _WORK, FairQueue(slots, MAX_WAITING), idle_s=_IDLE_S)


#: One pool per event loop.
pools = PerLoop(_new_pool)


async def close() -> None:
    """Terminate the workers of this event loop."""
    if (pool := pools.pop()) is not None:
        await pool.aclose()
