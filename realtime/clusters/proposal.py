"""Proposes another size for a grid from how busy its nodes are.

Writes are what a node's processor is kept busy by: twice as many write partitions halve them, and
with them everything that a filter node does. Queries are what its memory is taken by: twice as many
query partitions halve those. After-images that are kept for a while are divided by the writes too.
A sort node sees what its query partition matches, so that only more of those relieve it.

A proposal is for people (or programs) to follow. Nothing is resized by itself: it costs money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from realtime.clusters.forms import MOST_QUERY_PARTITIONS, MOST_WRITE_PARTITIONS
from realtime.grid.size import GridSize

#: Shares of a core: of the busiest node, from which on more nodes are proposed; and what it would
#: have to do at most after halving, for fewer to be proposed.
BUSY, CALM = 0.6, 0.15
#: Shares of a node's memory, likewise.
FULL, ROOMY = 0.5, 0.2
LATE_US = 1_000_000
#: Of a node of the grid that all share.
USUAL_MEMORY_BYTES = 1 << 30
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """What one node does, as it says itself."""

    is_sort_node: bool
    #: Share of a core over the last minute.
    busy: float
    lag_us: int
    #: Of the queries, and of after-images.
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

    `memory_bytes` is what a node may take.
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
    held = "live queries" if by_queries else "after-images"
    message = (
        f"{held.capitalize()} take most of the {largest.bytes // MIB} MiB that a filter node "
        f"uses; it may use {memory_bytes // MIB} MiB."
    )
    return Proposal(_more_queries(size) if by_queries else _more_writes(size), "memory", message)


def _for_less(
    size: GridSize, filters: Sequence[NodeLoad], sorts: Sequence[NodeLoad], memory_bytes: int
) -> Proposal | None:
    """Propose half of what there is twice, where the rest would still have little to do."""
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
