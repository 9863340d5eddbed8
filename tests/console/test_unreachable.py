"""The console while the server cannot be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_a_page_that_cannot_be_loaded_reports_it_and_recovers(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/members")
    window.shows("Members", "h1")
    window.page.call("Network.enable")
    window.page.call("Network.setBlockedURLs", urls=["*/assets/*"])
    window.click("nav a[href$='/graphql']")
    window.shows("This page could not be loaded", "[role=alert]")
    assert "preload" not in window.evaluate("document.body.innerText")
    window.page.call("Network.setBlockedURLs", urls=[])
    window.click("[role=alert] button", "Try again")
    window.shows("GraphQL", "h1")
    window.page.call("Network.setBlockedURLs", urls=["*/assets/*"])
    window.click("nav a[href$='/webhooks']")
    window.shows("This page could not be loaded", "[role=alert]")
    window.page.call("Network.setBlockedURLs", urls=[])
    window.evaluate("dispatchEvent(new Event('online'))")
    window.shows("Webhooks", "h1")
