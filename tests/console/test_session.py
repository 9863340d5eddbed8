"""Signing in and being signed out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.chromium import Browser
from tests.console.conftest import OpenWindow
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_after_sign_in_the_requested_page_follows(
    browser: Browser, server: str, notes: CollectionClient
) -> None:
    from tests.make import PASSWORD

    window = Window(browser.page(), server, notes.account.slug)
    window.page.call("Network.clearBrowserCookies")
    window.open("/keys")
    window.type("input[name=email]", notes.account.owner.email)
    window.type("input[name=password]", "wrong password")
    window.click("button", "Sign in")
    window.shows("wrong", "[role=alert]")
    window.type("input[name=password]", PASSWORD)
    window.press("Enter")
    window.shows("API keys", "h1")
    assert window.evaluate("document.cookie") == ""
    assert window.evaluate(
        "Object.keys(localStorage).every((name) => name.startsWith('rillbase:'))"
    )


def test_a_session_ended_in_another_browser_ends_here(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    from tenants.actions.sessions import do_end
    from tenants.models import UserSession

    window = open_window(notes.account)
    window.open("/members")
    window.shows(notes.account.owner.email)
    do_end(UserSession.objects.using("auth").filter(user=notes.account.owner))
    # The next call reveals it, which may be one that the page makes by itself.
    window.evaluate("document.querySelector('nav a[href$=usage]')?.click()")
    window.wait("document.querySelector('input[name=password]')")


def test_a_subscription_is_listed_and_ended(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    watcher, window = open_window(notes.account), open_window(notes.account)
    watcher.open(f"/collections/{notes.name}")
    watcher.is_live()
    window.open("/subscriptions")
    window.shows("notes", "table")
    window.shows(notes.account.owner.email, "table")
    window.click("table button", "End")
    window.click("dialog button.danger", "End subscription")
    watcher.wait("document.querySelector('[data-state=failed]')")


def test_the_command_palette_goes_anywhere(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/members")
    window.shows("Members", "h1")
    window.press("k", ctrl=True)
    window.type("[role=combobox]", "note")
    # The list of collections may come later than the palette.
    window.shows("notes", "[role=option][aria-selected=true]")
    window.press("Enter")
    window.is_live()
    assert window.evaluate("location.pathname").endswith("/collections/notes")


def test_the_command_palette_has_the_commands_of_the_menus(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/members")

    def run(command: str) -> None:
        window.press("k", ctrl=True)
        window.type("[role=combobox]", command)
        window.shows(command, "[role=option][aria-selected=true]")
        window.press("Enter")

    window.shows("Members", "h1")
    run("Dark theme")
    window.wait("document.documentElement.dataset.theme === 'dark'")
    run("New collection")
    window.shows("New collection", "dialog")
    window.click("dialog button", "Cancel")
    run("New tenant")
    window.type("dialog input", "Éclair & Söhne")
    window.wait("document.querySelector('dialog input.mono').value === 'eclair-sohne'")
    window.press("Escape")
    window.press("Escape")
    window.wait("!document.querySelector('dialog')")
    run("Sign out")
    window.wait("document.querySelector('input[name=password]')")


def test_a_browser_does_not_show_a_document_of_another_tenant(
    browser: Browser, server: str, notes: CollectionClient
) -> None:
    """Their address and their ETag are the same."""
    from tests.documents.collection import make_collection

    other = make_collection(server, name=notes.name)
    page = browser.page()
    page.open(f"{server}/sign-in")
    for tenant, title in ((notes, "Of one tenant"), (other, "Of the other")):
        tenant.insert({"_id": "same", "title": title})
        headers = json.dumps({"Authorization": f"Bearer {tenant.account.admin_key}"})
        address = f"{tenant.path}/documents/same"
        call = f"fetch({json.dumps(address)}, {{headers: {headers}}}).then((a) => a.json())"
        assert page.evaluate(call)["document"]["title"] == title
