"""The size of a grid."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GridSize:
    """The two dimensions of a grid."""

    #: Number of streams among which writes are divided: doubling it halves the writes of a node.
    write_partitions: int
    #: Each reads all write streams; together they divide the queries.
    query_partitions: int = 1

    @property
    def filter_nodes(self) -> int:
        return self.write_partitions * self.query_partitions

    @property
    def nodes(self) -> int:
        """Return the number of filter nodes and sort nodes."""
        return self.filter_nodes + self.query_partitions

    def __str__(self) -> str:
        return f"{self.query_partitions}x{self.write_partitions}"
