"""A tenant's own matching grid in the console: wanted, looked at, changed, given up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow
from tests.console.test_pages import AXE, VIOLATIONS, opened

if TYPE_CHECKING:
    from tests.make import MadeTenant

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

SINCE = "2026-11-21T12:00:00.000Z"
CONDITIONS = [
    {
        "type": "Applied",
        "status": "True",
        "reason": "AsDescribed",
        "message": "All objects are what they shall be.",
        "last_transition_at": SINCE,
    },
    {
        "type": "Running",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: insufficient cpu.",
        "last_transition_at": SINCE,
    },
    {
        "type": "Watching",
        "status": "False",
        "reason": "Asleep",
        "message": "The first live query has it start.",
        "last_transition_at": SINCE,
    },
]


def test_a_grid_of_ones_own_says_how_it_stands_and_why(
    open_window: OpenWindow, dedicated: MadeTenant, tmp_path: Path
) -> None:
    """Pictures are kept in RILLBASE_PICTURES, where that is set."""
    from foundation.scope import scoped
    from realtime.models import Cluster

    window = opened(open_window, dedicated)
    window.open("/grid")
    window.click("button", "Get a grid of your own")
    window.type("dialog input", "3")
    window.click("dialog button.main", "Get it")
    window.sees("pending", "[aria-label=Cluster] .badge")
    with scoped(tenant_id=dedicated.tenant.id):
        Cluster.objects.update(conditions=CONDITIONS)
    window.sees("insufficient cpu", "[aria-label=Conditions]")
    window.sees("3", "[aria-label=Cluster] .facts")

    folder = Path(os.environ.get("RILLBASE_PICTURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    for size, width, height in (("desk", 1280, 800), ("phone", 390, 1100)):
        for theme in ("light", "dark"):
            picture = folder / f"cluster-{size}-{theme}.png"
            window.page.picture(picture, width=width, height=height, dark=theme == "dark")
    window.evaluate(AXE.read_text() + "; 0")
    assert window.evaluate(VIOLATIONS) == []

    window.click("button", "Change")
    window.type("dialog input", "2")
    window.click("dialog button.main", "Change it")
    window.sees("2", "[aria-label=Cluster] .facts div:first-child dd")
    window.click("button", "Give up")
    window.click("dialog button.main", "Give it up")
    window.sees("deleting", "[aria-label=Cluster] .badge")
    assert window.complaints == []
