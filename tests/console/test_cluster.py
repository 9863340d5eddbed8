"""A tenant's dedicated grid in the console: created, inspected, resized and deleted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from realtime.grid.size import GridSize
from tests.console.conftest import OpenWindow
from tests.console.looking import opened, take_pictures, violations
from tests.realtime.fake_grid import fake_grid

if TYPE_CHECKING:
    from tests.make import TenantAccount

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

TIMES = "\N{MULTIPLICATION SIGN}"
SINCE = "2026-11-21T12:00:00.000Z"
CONDITIONS = [
    {
        "type": "Applied",
        "status": "True",
        "reason": "AsDescribed",
        "message": "All objects are as described.",
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
        "message": "The grid starts with the first live query.",
        "last_transition_at": SINCE,
    },
]


def test_a_dedicated_grid_shows_its_state_and_the_reason(
    open_window: OpenWindow, dedicated: TenantAccount, pictures: Path, valkey_url: str
) -> None:
    from foundation.scope import scoped
    from realtime.models import Cluster

    window = opened(open_window, dedicated)
    window.open("/grid")
    window.click("button", "Create a dedicated grid")
    window.type("dialog input", "3")
    window.click("dialog button.main", "Create")
    window.shows("pending", "[aria-label=Cluster] .badge")
    with scoped(tenant_id=dedicated.tenant.id):
        Cluster.objects.update(conditions=CONDITIONS)
    window.shows("insufficient cpu", "[aria-label=Conditions]")
    window.shows(f"1 {TIMES} 3", "[aria-label=Cluster] .facts")
    with fake_grid(dedicated, GridSize(3), valkey_url, busy_ppm=720_000):
        window.shows("72% of the time", "[aria-label=Cluster] .notice")
        take_pictures(window, pictures, "cluster", phone=(390, 1100))
        assert violations(window) == []
        window.click("[aria-label=Cluster] .notice button", "Resize")
        window.shows(f"1 {TIMES} 6 partitions?", "dialog")
        window.click("dialog button.main", "Resize")
        window.shows(f"1 {TIMES} 6", "[aria-label=Cluster] .facts")

    window.click("button", "Change")
    window.type("dialog input", "2")
    window.click("dialog button.main", "Change")
    window.shows(f"1 {TIMES} 2", "[aria-label=Cluster] .facts")
    window.click("button", "Delete")
    window.click("dialog button.main", "Delete")
    window.shows("deleting", "[aria-label=Cluster] .badge")
    assert window.complaints == []
