"""A collection moves to the other backend, in the console."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from documents.collections import mover
from tests.console.looking import opened, take_pictures, violations
from tests.documents.collection import make_collection

if TYPE_CHECKING:
    from tests.console.conftest import OpenWindow

MOVE = '[aria-label="Storage"] button'


def test_a_move_shows_its_progress_and_its_end(
    open_window: OpenWindow, server: str, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No live queries have to be served.
    monkeypatch.setattr(mover, "GRID_WAIT", timedelta(0))
    todos = make_collection(server)
    todos.insert_many([{"_id": n} for n in range(20)])
    place = (todos.account.tenant.pk, todos.collection.pk)
    window = opened(open_window, todos.account)
    window.open(f"/collections/{todos.name}/life")
    window.shows("The documents are in PostgreSQL.")
    window.click(MOVE, "Move to the storage node")
    window.click("dialog button", "Move")
    window.shows("moving to the storage node, 0 %")
    mover.step(*place)
    mover.step(*place)
    window.shows("moving to the storage node, 100 %")
    assert violations(window) == []
    take_pictures(window, pictures, "collection-move")
    window.click(MOVE, "Cancel the move")
    window.shows("Move to the storage node")
    window.click(MOVE, "Move to the storage node")
    window.click("dialog button", "Move")
    window.shows("moving to the storage node")
    while mover.step(*place) is not mover.MoveProgress.FINISHED:
        pass
    window.shows("The documents are in the storage node.")
    window.shows("Move to PostgreSQL")
