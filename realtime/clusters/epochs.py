"""Creates, switches and retires grid epochs. A resize adds a new epoch beside the old one. The
relay fills both; hubs switch to the new one once it is ready, and then the old one is retired.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import connections, transaction

from documents.backend import Backend
from realtime.grid.layout import GRIDS, GridEpoch, announce_change
from realtime.grid.size import GridSize

ALIAS = "relay"
#: Larger numbers are those of dedicated grids: of tenants, and of native collections.
MOST_SHARED = 1000

_IN_FORCE = (
    "SELECT i.epoch, g.number, g.write_partitions, g.query_partitions, g.ready_at IS NOT NULL "
    "FROM documents_installation i, documents_gridepoch g "
    "WHERE g.retired_at IS NULL AND g.tenant_id = %s ORDER BY g.number"
)


@dataclass(frozen=True, slots=True)
class OwnGrid:
    """A tenant's dedicated grid epoch."""

    grid: GridEpoch
    #: Whether its nodes have ever been ready; from then on, they match the tenant's queries.
    ready: bool


def shared() -> list[GridEpoch]:
    """Return the grids that all tenants share for collections in PostgreSQL."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(GRIDS.sql)
        rows = cursor.fetchall()
    return [GridEpoch(*row[:4]) for row in rows if row[4] == Backend.POSTGRES]


def of_tenant(tenant_id: UUID) -> list[GridEpoch]:
    """Return the dedicated grids that serve a tenant."""
    return [own.grid for own in dedicated_epochs(tenant_id) if own.ready]


def dedicated_epochs(tenant_id: UUID) -> list[OwnGrid]:
    """Return the dedicated grids of a tenant, the oldest first."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(_IN_FORCE, [tenant_id])
        return [OwnGrid(GridEpoch(*row[:4]), row[4]) for row in cursor.fetchall()]


def add(tenant_id: UUID, size: GridSize) -> None:
    """Add a grid, which the relay fills from now on, unless there is one of this size.

    A number is used only if a grid is added, since numbers are limited.
    """
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(
            "INSERT INTO documents_gridepoch "
            "(number, write_partitions, query_partitions, tenant_id) "
            "SELECT nextval('documents_tenantgrid'), %(write)s, %(query)s, %(tenant)s "
            "WHERE NOT EXISTS (SELECT FROM documents_gridepoch WHERE tenant_id = %(tenant)s "
            "AND (write_partitions, query_partitions) = (%(write)s, %(query)s) "
            "AND retired_at IS NULL) ON CONFLICT DO NOTHING",
            {"write": size.write_partitions, "query": size.query_partitions, "tenant": tenant_id},
        )


def add_shared(size: GridSize) -> int | None:
    """Add a grid that all tenants share, and return its number.

    It takes over once its nodes are ready. None: the newest grid already has this size.
    """
    with transaction.atomic(ALIAS), connections[ALIAS].cursor() as cursor:
        cursor.execute("LOCK TABLE documents_gridepoch IN SHARE ROW EXCLUSIVE MODE")
        newest = shared()[-1]
        if newest.size == size:
            return None
        cursor.execute(
            "INSERT INTO documents_gridepoch (number, write_partitions, query_partitions) "
            "SELECT max(number) + 1, %s, %s FROM documents_gridepoch WHERE number <= %s "
            "RETURNING number",
            [size.write_partitions, size.query_partitions, MOST_SHARED],
        )
        (number,) = cursor.fetchone()
        transaction.on_commit(partial(announce_change, None), using=ALIAS, robust=True)
    return int(number)


def grids_after(tenant_id: UUID, size: GridSize) -> list[OwnGrid]:
    """Return the grids that would be current after `add`, without adding one."""
    grids = dedicated_epochs(tenant_id)
    if any(own.grid.size == size for own in grids):
        return grids
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(
            "SELECT epoch, coalesce(pg_sequence_last_value('documents_tenantgrid'), 1000) + 1 "
            "FROM documents_installation"
        )
        installation, number = cursor.fetchone()
    grid = GridEpoch(installation, number, size.write_partitions, size.query_partitions)
    return [*grids, OwnGrid(grid, ready=False)]


def note_ready(epoch: int) -> None:
    """Direct the tenant's queries to a grid."""
    _execute(
        "UPDATE documents_gridepoch SET ready_at = clock_timestamp() "
        "WHERE number = %s AND ready_at IS NULL RETURNING tenant_id",
        epoch,
    )


def retire(epoch: int) -> None:
    """Retire a grid."""
    _execute(
        "UPDATE documents_gridepoch SET retired_at = clock_timestamp() "
        "WHERE number = %s AND retired_at IS NULL RETURNING tenant_id",
        epoch,
    )


def disown(tenant_id: UUID) -> None:
    """Retire all grids of a tenant and clear their owner. The rows remain, so that their data in
    the event layer is removed.
    """
    _execute(
        "UPDATE documents_gridepoch SET tenant_id = NULL, "
        "retired_at = coalesce(retired_at, clock_timestamp()) "
        "WHERE tenant_id = %s RETURNING %s::uuid",
        tenant_id,
        tenant_id,
    )


def _execute(statement: str, *parameters: int | UUID) -> None:
    """Change grids, and notify the servers of their tenants."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(statement, parameters)
        changed = {row[0] for row in cursor.fetchall()}
    for tenant_id in changed:
        transaction.on_commit(partial(announce_change, tenant_id), using=ALIAS, robust=True)
