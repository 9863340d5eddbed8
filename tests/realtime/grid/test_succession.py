"""One shared grid takes over from another."""

from __future__ import annotations

from realtime.grid.layout import GridEpoch
from realtime.grid.succession import OVERLAP_S, Succession

OLD, NEW, NEWER = GridEpoch(1, 1, 2), GridEpoch(1, 2, 2, 2), GridEpoch(1, 3, 4)


def test_older_grids_are_retired_once_the_newest_has_been_ready_long_enough() -> None:
    succession = Succession()
    assert succession.ready_successor([OLD, NEW], watches=True, now_s=100) is None
    assert succession.ready_successor([OLD, NEW], watches=True, now_s=99 + OVERLAP_S) is None
    assert succession.ready_successor([OLD, NEW], watches=True, now_s=100 + OVERLAP_S) == NEW


def test_an_interruption_restarts_the_time() -> None:
    succession = Succession()
    succession.ready_successor([OLD, NEW], watches=True, now_s=0)
    assert succession.ready_successor([OLD, NEW], watches=False, now_s=OVERLAP_S) is None
    assert succession.ready_successor([OLD, NEW], watches=True, now_s=OVERLAP_S + 1) is None
    assert succession.ready_successor([OLD, NEW], watches=True, now_s=2 * OVERLAP_S + 1) == NEW


def test_a_newer_grid_has_to_be_ready_for_as_long_itself() -> None:
    succession = Succession()
    succession.ready_successor([OLD, NEW], watches=True, now_s=0)
    assert succession.ready_successor([OLD, NEW, NEWER], watches=True, now_s=OVERLAP_S) is None
    assert succession.ready_successor([OLD, NEW, NEWER], watches=True, now_s=2 * OVERLAP_S) == NEWER


def test_the_only_grid_retires_no_other() -> None:
    succession = Succession()
    for now_s in (0, OVERLAP_S):
        assert succession.ready_successor([OLD], watches=True, now_s=now_s) is None
