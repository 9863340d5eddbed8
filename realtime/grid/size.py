"""How large a grid is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GridSize:
    """The two dimensions of a grid."""

    #: Into how many streams writes are divided: a node of twice as many handles half of the writes.
    write_partitions: int
    #: Each multiplies what is read from the write streams, and divides the queries that are held.
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
