"""The hot path's connections, and the statements that open a transaction of a tenant."""

from __future__ import annotations

import time
from uuid import UUID

from psycopg.conninfo import make_conninfo

from foundation.database_roles import DatabaseRole
from foundation.environment import environment
from foundation.ids import text_of
from foundation.per_loop import PerLoop
from foundation.postgres import SessionPool, Statement
from foundation.postgres.session import Oid, Step
from foundation.remote_clock import RemoteClock

#: Every statement here must use an index, regardless of the statistics of a table that has just
#: been filled, and is planned only once.
SETTINGS = " ".join(
    f"-c {name}={value}"
    for name, value in {
        "statement_timeout": "30s",
        "lock_timeout": "2s",
        "idle_in_transaction_session_timeout": "60s",
        "plan_cache_mode": "force_generic_plan",
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
    }.items()
)

_SCOPE = Statement(
    "SELECT set_config('rillbase.tenant', $1, true), set_config('rillbase.user', '', true)",
    (Oid.TEXT,),
)
_BEGIN = Statement("BEGIN")
_BEGIN_SNAPSHOT = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_COMMIT = Statement("COMMIT")

_pools = PerLoop(lambda: SessionPool(_conninfo, environment().rillbase_database_pool_size))


_clocks = PerLoop(lambda: RemoteClock(time.monotonic))


def pool() -> SessionPool:
    """Return the running loop's connections of the role `rb_app`."""
    return _pools.get()


def clock() -> RemoteClock:
    """Return the database's clock, as transactions of the running loop have observed it."""
    return _clocks.get()


async def close_pool() -> None:
    """Close the running loop's connections."""
    if (session_pool := _pools.pop()) is not None:
        session_pool.close()


def _conninfo() -> str:
    return make_conninfo(
        environment().role_url(DatabaseRole.APP),
        options=SETTINGS,
        application_name="rillbase:documents",
        connect_timeout=5,
    )


def scope(tenant_id: UUID) -> Step:
    """Set the tenant until the transaction ends. Without BEGIN, it ends with the round trip:
    statements that are pipelined together are a transaction.
    """
    return _SCOPE, (text_of(tenant_id).encode(),)


def begin(tenant_id: UUID) -> list[Step]:
    """Begin a transaction that writes."""
    return [(_BEGIN, ()), scope(tenant_id)]


def begin_snapshot(tenant_id: UUID) -> list[Step]:
    """Begin a read-only transaction with one snapshot."""
    return [(_BEGIN_SNAPSHOT, ()), scope(tenant_id)]


def commit() -> Step:
    return _COMMIT, ()
