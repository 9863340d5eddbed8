"""Proposes a new size for a grid, based on the load of its nodes. Writes determine the CPU load of
a filter node: twice as many write partitions halve it. Queries determine its memory: twice as many
query partitions halve it. Retained after-images are divided by write partitions as well. A sort
node receives the matches of its query partition, so only more query partitions relieve it. A
proposal is advice. Nothing is resized automatically, because it costs money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from realtime.clusters.forms import MOST_QUERY_PARTITIONS, MOST_WRITE_PARTITIONS
from realtime.grid.size import GridSize

#: Shares of a core: the load of the busiest node above which more nodes are proposed, and its
#: maximum load after halving for which fewer are proposed.
BUSY, CALM = 0.6, 0.15
#: Shares of a node's memory, likewise.
FULL, ROOMY = 0.5, 0.2
LATE_US = 1_000_000
#: Memory of a node of the shared grid.
USUAL_MEMORY_BYTES = 1 << 30
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """The load of one node, as reported by the node."""

    is_sort_node: bool
    #: Share of a core over the last minute.
    busy: float
    lag_us: int
    #: Memory of the queries, and of after-images.
    index_bytes: int
    image_bytes: int

    @property
    def bytes(self) -> int:
        return self.index_bytes + self.image_bytes


@dataclass(frozen=True, slots=True)
class Proposal:
    """Another size, and why."""

    size: GridSize
    #: `busy`, `late`, `memory`, `calm`.
    reason: str
    message: str


def propose(size: GridSize, loads: Sequence[NodeLoad], memory_bytes: int) -> Proposal | None:
    """Return a better size for a grid; None: its size is right, or not enough is known.
    `memory_bytes` is the memory limit of a node.
    """
    filters = [load for load in loads if not load.is_sort_node]
    sorts = [load for load in loads if load.is_sort_node]
    if len(filters) < size.filter_nodes or len(sorts) < size.query_partitions:
        return None
    proposal = (
        _for_processors(size, filters, sorts)
        or _for_memory(size, filters, memory_bytes)
        or _for_less(size, filters, sorts, memory_bytes)
    )
    return proposal if proposal is not None and proposal.size != size else None


def _for_processors(
    size: GridSize, filters: Sequence[NodeLoad], sorts: Sequence[NodeLoad]
) -> Proposal | None:
    busiest, latest = max(load.busy for load in filters), max(load.lag_us for load in filters)
    if busiest >= BUSY:
        message = f"The busiest filter node keeps a core busy for {busiest:.0%} of the time."
        return Proposal(_more_writes(size), "busy", message)
    if latest >= LATE_US:
        message = f"A filter node is {latest / 1e6:.1f} s behind the writes."
        return Proposal(_more_writes(size), "late", message)
    busiest = max(load.busy for load in sorts)
    if busiest >= BUSY:
        message = f"The busiest sort node keeps a core busy for {busiest:.0%} of the time."
        return Proposal(_more_queries(size), "busy", message)
    return None


def _for_memory(size: GridSize, filters: Sequence[NodeLoad], memory_bytes: int) -> Proposal | None:
    largest = max(filters, key=lambda load: load.bytes)
    if largest.bytes < FULL * memory_bytes:
        return None
    by_queries = largest.index_bytes >= largest.image_bytes
    content = "live queries" if by_queries else "after-images"
    message = (
        f"{content.capitalize()} take most of the {largest.bytes // MIB} MiB that a filter node "
        f"uses; it may use {memory_bytes // MIB} MiB."
    )
    return Proposal(_more_queries(size) if by_queries else _more_writes(size), "memory", message)


def _for_less(
    size: GridSize, filters: Sequence[NodeLoad], sorts: Sequence[NodeLoad], memory_bytes: int
) -> Proposal | None:
    """Propose half the partitions, if the remaining nodes would still have a low load."""
    busiest = 2 * max(load.busy for load in (*filters, *sorts))
    largest = 2 * max(load.bytes for load in filters)
    if busiest > CALM or largest > ROOMY * memory_bytes:
        return None
    if size.write_partitions > 1:
        less = GridSize(-(-size.write_partitions // 2), size.query_partitions)
    else:
        less = GridSize(size.write_partitions, -(-size.query_partitions // 2))
    message = (
        f"With half as many nodes, each would keep a core busy for at most {busiest:.0%} of the "
        "time."
    )
    return Proposal(less, "calm", message)


def _more_writes(size: GridSize) -> GridSize:
    return GridSize(min(2 * size.write_partitions, MOST_WRITE_PARTITIONS), size.query_partitions)


def _more_queries(size: GridSize) -> GridSize:
    return GridSize(size.write_partitions, min(2 * size.query_partitions, MOST_QUERY_PARTITIONS))
