"""When a hub follows another grid epoch."""

from __future__ import annotations

from realtime.grid.layout import GridEpoch
from realtime.hub.next_grid import next_grid

OLD, NEW = GridEpoch(1, 1, 2), GridEpoch(1, 2, 4)


def test_the_only_grid_is_followed_on() -> None:
    assert next_grid([OLD], OLD, newest_watches=True) is None
    assert next_grid([], OLD, newest_watches=False) is None


def test_a_new_grid_is_followed_when_all_its_nodes_watch() -> None:
    assert next_grid([OLD, NEW], OLD, newest_watches=False) is None
    assert next_grid([OLD, NEW], OLD, newest_watches=True) == NEW
    assert next_grid([OLD, NEW], NEW, newest_watches=True) is None


def test_hubs_leave_a_retired_grid_at_once() -> None:
    assert next_grid([NEW], OLD, newest_watches=False) == NEW
