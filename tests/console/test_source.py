"""The source of a collection in the console: declared, inspected, paused and removed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow
from tests.console.looking import opened, take_pictures, violations
from tests.launcher_command import reachable_directory

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient
    from tests.make import TenantAccount

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_only_an_empty_collection_is_offered_a_table(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = opened(open_window, notes.account)
    window.open(f"/collections/{notes.name}/source")
    window.shows("this one has 3 documents", "[aria-label=Source]")
    assert window.texts("[aria-label=Source] input") == []


def test_a_collection_follows_a_table_and_shows_its_state(
    server: str, open_window: OpenWindow, dedicated: TenantAccount, pictures: Path
) -> None:
    from sources.following.service import FollowerService
    from tests.aggregates.background_service import running
    from tests.documents.collection import make_collection
    from tests.sources.upstream import database, running_server

    make_collection(server, account=dedicated, name="orders")
    window = opened(open_window, dedicated)
    with (
        reachable_directory() as directory,
        running_server(Path(directory)) as theirs,
        database(theirs) as shop,
        running(FollowerService),
    ):
        shop.run(
            "CREATE TABLE orders (id int PRIMARY KEY, total numeric)",
            "INSERT INTO orders SELECT k, k * 1.5 FROM generate_series(1, 40) k",
        )
        window.open("/collections/orders/source")
        window.type("[aria-label=Source] input[placeholder^=postgresql]", shop.url)
        window.type("[aria-label=Source] input[placeholder='public.orders']", "missing")
        window.click("button", "Follow")
        reason = "The table public.missing does not exist"
        window.shows(reason, "[role=alert]")
        assert [text.count(reason) for text in window.texts("[role=alert]")] == [1]
        window.type("[aria-label=Source] input[placeholder='public.orders']", "orders")
        window.click("button", "Follow")
        window.shows("live", "[aria-label=Source] .badge")
        window.shows("40", "[aria-label=Source] .facts")
        take_pictures(window, pictures, "source", phone=(390, 1000))
        assert violations(window) == []
        window.click("button", "Pause")
        window.shows("paused", "[aria-label=Source] .badge")
        window.click("button", "Resume")
        window.shows("live", "[aria-label=Source] .badge")
        window.click("button", "Remove")
        window.click("dialog button.danger", "Remove")
        window.shows("Follow a PostgreSQL table", "[aria-label=Source]")
    assert window.complaints == []
