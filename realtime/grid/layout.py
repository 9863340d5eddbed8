"""The nodes of a grid: QP x WP filter nodes, and a sort node for each query partition.

How many write partitions an epoch has is in the database, beside the outbox that fills them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from documents.outbox.database import relay_pool
from foundation.postgres import Statement
from realtime.events import layer

#: Each query partition multiplies what is read from the write streams; one is enough for a machine.
QUERY_PARTITIONS = 1

GRIDS = Statement(
    "SELECT i.epoch, g.number, g.write_partitions FROM documents_installation i, "
    "documents_gridepoch g WHERE g.retired_at IS NULL ORDER BY g.number"
)

_RETIRED = Statement(
    "SELECT i.epoch, g.number, g.write_partitions FROM documents_installation i, "
    "documents_gridepoch g WHERE g.retired_at > clock_timestamp() - interval '1 day' "
    "ORDER BY g.number"
)


@dataclass(frozen=True, slots=True)
class Node:
    """One node. It is all that a process needs to know to become it."""

    installation: int
    epoch: int
    query_partition: int
    #: None: the sort node.
    write_partition: int | None
    write_partitions: int

    @property
    def name(self) -> str:
        """Its name within the grid epoch, as its lease has it."""
        if self.write_partition is None:
            return layer.sort_node(self.query_partition)
        return layer.filter_node(self.query_partition, self.write_partition)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Node:
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Grid:
    """One grid epoch of an installation."""

    installation: int
    epoch: int
    write_partitions: int
    query_partitions: int = QUERY_PARTITIONS

    def nodes(self) -> list[Node]:
        partitions: list[int | None] = [*range(self.write_partitions), None]
        return [
            Node(self.installation, self.epoch, query, write, self.write_partitions)
            for query in range(self.query_partitions)
            for write in partitions
        ]


async def read_grids() -> list[Grid]:
    """Return the grid epochs that are served; raise `psycopg.Error` when nobody can say."""
    return await _read(GRIDS)


async def read_retired() -> list[Grid]:
    """Return the grid epochs that were retired within a day; raise as `read_grids` does."""
    return await _read(_RETIRED)


async def _read(statement: Statement) -> list[Grid]:
    async with relay_pool().session() as session:
        (found,) = await session.run([(statement, ())])
    return [
        Grid(found.integer(row, 0), found.integer(row, 1), found.integer(row, 2))
        for row in range(found.rows)
    ]
