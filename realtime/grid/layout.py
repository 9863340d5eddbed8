"""The nodes of a grid: QP x WP filter nodes, and a sort node for each query partition.

How many of each an epoch has is in the database, beside the outbox that fills the write streams.
Each epoch receives the writes of one backend. Most epochs are shared by all tenants; dedicated ones
receive only the writes of their tenant.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from uuid import UUID

from documents.backend import Backend
from documents.outbox.database import relay_pool
from documents.outbox.events import prefix
from foundation import server_messages
from foundation.json_types import JsonObject
from foundation.postgres import Statement, StatementResult
from foundation.postgres.session import Oid, int8
from foundation.valkey_wire import ValkeyWire
from realtime.events.layer import GridLayer, filter_node, sort_node
from realtime.grid.size import GridSize

#: The message that the grids of a tenant, or the shared ones, have changed.
CHANGED = "grids.changed"

_SELECT = (
    "SELECT i.epoch, g.number, g.write_partitions, g.query_partitions, g.backend, g.tenant_id "
    "FROM documents_installation i, documents_gridepoch g WHERE "
)
#: The epochs that all tenants share.
GRIDS = Statement(_SELECT + "g.retired_at IS NULL AND g.tenant_id IS NULL ORDER BY g.number")
#: The epochs that may match a tenant's queries; one that has never been ready is excluded.
_SERVED = Statement(
    _SELECT
    + "g.retired_at IS NULL AND (g.tenant_id IS NULL OR g.ready_at IS NOT NULL) ORDER BY g.number"
)
_NUMBERED = Statement(_SELECT + "g.retired_at IS NULL AND g.number = $1", (Oid.INT8,))
#: All shared epochs of a backend except the one that takes over.
_RETIRE = Statement(
    "UPDATE documents_gridepoch SET retired_at = clock_timestamp() "
    "WHERE number < $1 AND backend = $2 AND tenant_id IS NULL AND retired_at IS NULL",
    (Oid.INT8, Oid.TEXT),
)
_RETIRED = Statement(
    _SELECT + "g.retired_at > clock_timestamp() - interval '1 day' ORDER BY g.number"
)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node: all that a process needs to know to run it."""

    installation: int
    epoch: int
    query_partition: int
    #: None: the sort node.
    write_partition: int | None
    write_partitions: int
    backend: Backend = Backend.POSTGRES

    @property
    def prefix(self) -> str:
        """The prefix of its streams."""
        return prefix(self.installation, self.backend)

    @property
    def name(self) -> str:
        """Its name within the grid epoch, as in its lease."""
        if self.write_partition is None:
            return sort_node(self.query_partition)
        return filter_node(self.query_partition, self.write_partition)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> NodeSpec:
        members = json.loads(text)
        return cls(**{**members, "backend": Backend(members["backend"])})


@dataclass(frozen=True, slots=True)
class GridEpoch:
    """One grid epoch of an installation."""

    installation: int
    epoch: int
    write_partitions: int
    query_partitions: int = 1
    #: The backend whose writes it receives.
    backend: Backend = Backend.POSTGRES

    @property
    def size(self) -> GridSize:
        return GridSize(self.write_partitions, self.query_partitions)

    @property
    def prefix(self) -> str:
        """The prefix of its streams."""
        return prefix(self.installation, self.backend)

    def layer(self, wire: ValkeyWire) -> GridLayer:
        """Return the access to its streams and registry."""
        return GridLayer(wire, self.prefix, self.epoch)

    def nodes(self) -> list[NodeSpec]:
        partitions: list[int | None] = [*range(self.write_partitions), None]
        return [
            NodeSpec(
                self.installation, self.epoch, query, write, self.write_partitions, self.backend
            )
            for query in range(self.query_partitions)
            for write in partitions
        ]


@dataclass(frozen=True, slots=True)
class ServingGrids:
    """The grids that match queries, each list in order of creation."""

    shared: dict[Backend, list[GridEpoch]]
    #: By tenant, for collections in PostgreSQL.
    own: dict[UUID, list[GridEpoch]]

    def of(self, owner: UUID | Backend) -> list[GridEpoch]:
        """Return the dedicated grids of a tenant, or the shared ones of a backend."""
        if isinstance(owner, Backend):
            return self.shared.get(owner, [])
        return self.own.get(owner, [])


async def read_served() -> ServingGrids:
    """Return which grids serve which tenants; raise `psycopg.Error` if it cannot."""
    result = await _run(_SERVED)
    served = ServingGrids({}, {})
    for row, grid in enumerate(_grids(result)):
        tenant = result.raw(row, 5)
        if tenant is None:
            served.shared.setdefault(grid.backend, []).append(grid)
        else:
            served.own.setdefault(UUID(bytes=tenant), []).append(grid)
    return served


async def read_grids() -> list[GridEpoch]:
    """Return the grid epochs that all tenants share; raise as `read_served` does."""
    return _grids(await _run(GRIDS))


async def read_grid(epoch: int) -> list[GridEpoch]:
    """Return one grid epoch of any tenant, unless it was retired; raise as `read_served`."""
    return _grids(await _run(_NUMBERED, int8(epoch)))


async def read_retired() -> list[GridEpoch]:
    """Return the grid epochs that were retired within a day; raise as `read_served` does."""
    return _grids(await _run(_RETIRED))


async def retire_before(grid: GridEpoch) -> None:
    """Retire the shared grids of its backend before this one; raise as `read_served` does."""
    await _run(_RETIRE, int8(grid.epoch), grid.backend.encode())
    announce_change(None)


def announce_change(tenant_id: UUID | None) -> None:
    """Ask the servers of a tenant, or with None all servers, to read their grids now."""
    message: JsonObject = {"type": CHANGED}
    everybody = server_messages.SERVERS
    group = everybody if tenant_id is None else server_messages.tenant_group(tenant_id)
    server_messages.send(group, message)


async def _run(statement: Statement, *parameters: bytes) -> StatementResult:
    async with relay_pool().session() as session:
        (result,) = await session.run([(statement, parameters)])
    return result


def _grids(result: StatementResult) -> list[GridEpoch]:
    return [_grid(result, row) for row in range(result.rows)]


def _grid(result: StatementResult, row: int) -> GridEpoch:
    installation, epoch, write, query = (result.integer(row, column) for column in range(4))
    return GridEpoch(installation, epoch, write, query, Backend(result.text(row, 4)))
