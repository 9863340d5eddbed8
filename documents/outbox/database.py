"""The role `rb_relay`'s connections, and the rotation of slots."""

from __future__ import annotations

from psycopg.conninfo import make_conninfo

from foundation.database_roles import DatabaseRole
from foundation.environment import environment
from foundation.per_loop import PerLoop
from foundation.postgres import SessionPool, Statement

#: The number of tables: each slot covers one minute.
OUTBOX_SLOTS = 8
SLOT_S = 60
#: The slot that rows and marks written now belong to.
CURRENT_SLOT = (
    f"((extract(epoch FROM clock_timestamp())::bigint / {SLOT_S}) % {OUTBOX_SLOTS})::smallint"
)

#: What this role commits may be lost in a crash of the database: if a mark is missing, something is
#: published again. Each execution is planned separately, since the part of the outbox that a
#: watermark excludes varies; and plans use the indexes, since the outbox fills and empties too
#: quickly for correct statistics.
_SETTINGS = (
    "-c statement_timeout=30s -c lock_timeout=200ms -c idle_in_transaction_session_timeout=10s "
    "-c synchronous_commit=off -c plan_cache_mode=force_custom_plan -c enable_seqscan=off"
)
_POOL_SIZE = 2

BEGIN = Statement("BEGIN")
COMMIT = Statement("COMMIT")
#: For the few transactions that must not be lost.
DURABLE = Statement("SET LOCAL synchronous_commit = on")

_pools = PerLoop(lambda: SessionPool(relay_conninfo, _POOL_SIZE))


def relay_pool() -> SessionPool:
    """Return the running loop's connections of the role `rb_relay`."""
    return _pools.get()


def relay_conninfo() -> str:
    return make_conninfo(
        environment().role_url(DatabaseRole.RELAY),
        options=_SETTINGS,
        application_name="rillbase:outbox",
        connect_timeout=5,
    )


async def close_relay_pool() -> None:
    """Close the running loop's connections."""
    if (pool := _pools.pop()) is not None:
        pool.close()
