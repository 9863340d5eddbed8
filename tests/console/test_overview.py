"""The overview page of a tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_the_first_page_shows_what_the_tenant_has(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("")
    window.wait(f"location.pathname === '/t/{notes.account.slug}/overview'")
    window.shows("notes\n3", ".shares li")
    window.shows("1 of 500", ".quota-shares")
    window.shows("No errors recorded.", ".tile")


def test_the_overview_follows_what_happens(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/overview")
    window.shows("notes\n3", ".shares li")
    notes.insert_many([{"_id": "another"}])
    notes.ask({"filter": {"rank": {"$nope": 1}}})
    window.shows("notes\n4", ".shares li")
    window.shows("unsupported_operator", ".tile")
    window.click(".tile a", "unsupported_operator")
    window.wait("location.pathname.endsWith('/errors')")
    window.shows("unsupported_operator", ".page-head")


def test_an_empty_tenant_finds_the_first_steps_until_it_has_a_collection(
    open_window: OpenWindow,
) -> None:
    from tests.make import make_tenant

    window = open_window(make_tenant())
    window.open("/overview")
    window.click("button", "Set it up")
    window.wait("document.querySelectorAll('.board li').length === 4")
    window.open("/overview")
    window.shows("ideas\n4", ".shares li")
    assert window.texts(".board") == []
    window.open("/start")
    window.wait("document.querySelectorAll('.board li').length === 4")
