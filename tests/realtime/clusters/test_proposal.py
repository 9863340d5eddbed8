"""Proposing another size for a grid, from the load of its nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from realtime.clusters.proposal import MIB, NodeLoad, propose
from realtime.grid.size import GridSize

MEMORY = 512 * MIB
QUIET = NodeLoad(
    is_sort_node=False, busy=0.3, lag_us=2_000, index_bytes=20 * MIB, image_bytes=9 * MIB
)
SORTS = replace(QUIET, is_sort_node=True, index_bytes=0)


def loads(size: GridSize, busiest: NodeLoad = QUIET, sorts: NodeLoad = SORTS) -> list[NodeLoad]:
    """One filter node that differs from the rest, and equal sort nodes."""
    return [busiest, *[QUIET] * (size.filter_nodes - 1), *[sorts] * size.query_partitions]


def test_no_change_is_proposed_for_a_grid_that_suits_its_load() -> None:
    assert propose(GridSize(2), loads(GridSize(2)), MEMORY) is None


@pytest.mark.parametrize(
    ("busiest", "wanted", "reason", "says"),
    [
        (replace(QUIET, busy=0.72), GridSize(4), "busy", "72%"),
        (replace(QUIET, lag_us=2_500_000), GridSize(4), "late", "2.5 s behind"),
        (replace(QUIET, index_bytes=300 * MIB), GridSize(2, 2), "memory", "309 MiB"),
        (replace(QUIET, image_bytes=300 * MIB), GridSize(4), "memory", "320 MiB"),
    ],
)
def test_the_overloaded_dimension_grows(
    busiest: NodeLoad, wanted: GridSize, reason: str, says: str
) -> None:
    proposal = propose(GridSize(2), loads(GridSize(2), busiest), MEMORY)
    assert proposal is not None
    assert (proposal.size, proposal.reason) == (wanted, reason)
    assert says in proposal.message


def test_only_more_query_partitions_relieve_a_sort_node() -> None:
    proposal = propose(GridSize(2), loads(GridSize(2), sorts=replace(SORTS, busy=0.9)), MEMORY)
    assert proposal is not None
    assert proposal.size == GridSize(2, 2)


def test_a_grid_with_little_load_is_halved_down_to_one_node() -> None:
    idle, calm = replace(QUIET, busy=0.01), replace(SORTS, busy=0.01)
    size, sizes = GridSize(3, 2), []
    while proposal := propose(size, [idle] * size.filter_nodes + [calm] * size.nodes, MEMORY):
        assert proposal.reason == "calm"
        size = proposal.size
        sizes.append(size)
    assert sizes == [GridSize(2, 2), GridSize(1, 2), GridSize(1)]


def test_a_followed_proposal_is_stable_under_the_same_load() -> None:
    busy = replace(QUIET, busy=0.6)
    grown = propose(GridSize(2), [busy, busy, SORTS], MEMORY)
    assert grown is not None
    half = replace(QUIET, busy=0.3)
    assert propose(grown.size, [half] * 4 + [SORTS], MEMORY) is None


def test_nothing_is_proposed_before_all_nodes_know_their_load() -> None:
    busy = replace(QUIET, busy=0.9)
    assert propose(GridSize(2), [busy, SORTS], MEMORY) is None
    assert propose(GridSize(2), [busy, busy], MEMORY) is None


def test_a_grid_of_the_largest_size_does_not_grow() -> None:
    busy = replace(QUIET, busy=0.9)
    assert propose(GridSize(64), [busy] * 64 + [SORTS], MEMORY) is None
