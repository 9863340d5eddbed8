"""Every page is accessible, obeys the content security policy, and is photographed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow
from tests.console.looking import DESK, opened, take_pictures, violations
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.console.sample_tenant import SampleTenant
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

#: Each page with a text that shows that it has loaded.
PAGES = {
    "/overview": ".tile",
    "/start": "button.main",
    "/collections/notes": "[data-state=live]",
    "/collections/notes/schema": ".definition-form",
    "/collections/notes/rules": ".try-as .editor-host",
    "/collections/notes/indexes": ".empty",
    "/collections/notes/life": ".life input",
    "/saved": "table, .empty",
    "/playground": ".editor-host",
    "/subscriptions": "h1",
    "/activity": ".figure",
    "/grid": ".node",
    "/topics": ".empty",
    "/aggregates": ".empty",
    "/datasets": ".empty",
    "/graphql": ".graphql-schema button",
    "/webhooks": ".empty",
    "/keys": "table, .empty",
    "/members": "table",
    "/usage": ".quota",
    "/requests": "table, .empty",
    "/errors": "table, .empty",
    "/audit": "table, .empty",
    "/settings": "textarea",
}
#: Pages that look different once they have content.
FILLED = {
    "/collections/notes": "[data-key=note-0]",
    "/topics": "table",
    "/aggregates": "table",
    "/datasets": "table",
    "/webhooks": "table",
    "/requests": "table",
    "/errors": "table",
    "/audit": "table",
}
#: Dialogs: the page, the button that opens one, and a text that it shows.
OPENED = (
    ("/collections/notes", ("[data-key=note-0] [aria-colindex='2']",), ".panel .tree"),
    ("/collections/notes/indexes", ("button", "New index"), "dialog input"),
    ("/keys", ("button", "New key"), "dialog input"),
    ("/members", ("button", "Invite"), "dialog input"),
    ("/topics", ("button", "New topic"), "dialog input"),
    ("/aggregates", ("button", "New aggregate"), "dialog .definition-form"),
    ("/datasets", ("button", "New dataset"), "dialog .definition-form"),
    ("/webhooks", ("button", "New webhook"), "dialog input"),
)
#: A sample that represents the others in the everyday suite.
EVERYDAY = (
    "/overview",
    "/start",
    "/collections/notes",
    "/collections/notes/rules",
    "/keys",
    "/usage",
)

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture
def sample_tenant(server: str) -> SampleTenant:
    from tests.console.sample_tenant import create_sample_tenant

    return create_sample_tenant(server)


def go(window: Window, path: str, there: str) -> None:
    window.open(path)
    window.wait(f"document.querySelector({there!r})")


def on_desk(window: Window) -> None:
    """Give the page desktop size, so that the sidebar is visible."""
    width, height = DESK
    window.page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=height,
        deviceScaleFactor=1,
        mobile=False,
    )


def complaints_of_axe(window: Window, pages: Mapping[str, str]) -> dict[str, list[str]]:
    items = {}
    for path, there in pages.items():
        go(window, path, there)
        if complaints := violations(window):
            items[path] = complaints
    return items


def test_pages_have_nothing_that_keeps_people_out(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = opened(open_window, notes.account)
    assert complaints_of_axe(window, {path: PAGES[path] for path in EVERYDAY}) == {}
    assert window.complaints == []


@pytest.mark.long
def test_every_page_has_nothing_that_keeps_people_out(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = opened(open_window, notes.account)
    assert complaints_of_axe(window, PAGES) == {}
    assert window.complaints == []


@pytest.mark.long
def test_pages_with_content_are_accessible_and_are_photographed(
    open_window: OpenWindow, sample_tenant: SampleTenant, pictures: Path
) -> None:
    window = opened(open_window, sample_tenant.account)
    pages = {**FILLED, **sample_tenant.pages}
    for path, there in pages.items():
        go(window, path, there)
        name = _UUID.sub("one", path).replace("/", "-")
        take_pictures(window, pictures, f"filled{name}")
        assert violations(window) == [], path
    assert window.complaints == []


@pytest.mark.long
def test_dialogs_and_menus_are_accessible(
    open_window: OpenWindow, sample_tenant: SampleTenant, pictures: Path
) -> None:
    window = opened(open_window, sample_tenant.account)
    for path, button, there in OPENED:
        go(window, path, "h1")
        window.click(*button)
        window.wait(f"document.querySelector({there!r})")
        name = f"opened{path.replace('/', '-')}"
        take_pictures(window, pictures, name)
        assert violations(window) == [], path
    assert window.complaints == []


def test_the_way_in_has_nothing_that_keeps_people_out(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = opened(open_window, notes.account)
    window.page.open(f"{window.base}/account")
    window.wait("document.querySelector('table')")
    assert violations(window) == []
    window.page.call("Network.clearBrowserCookies")
    for path in ("/", "/sign-up", "/forgot-password"):
        window.page.open(window.base + path)
        window.wait("document.querySelector('form')")
        assert violations(window) == []


@pytest.mark.long
def test_pictures_of_every_page(
    open_window: OpenWindow, notes: CollectionClient, pictures: Path
) -> None:
    window = opened(open_window, notes.account)
    for path, there in PAGES.items():
        go(window, path, there)
        take_pictures(window, pictures, path.strip("/").replace("/", "-"))
    assert violations(window) == []


def test_many_collections_leave_the_other_pages_in_view(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    from documents.models import Collection
    from foundation.scope import scoped

    with scoped(tenant_id=notes.account.tenant.id):
        for n in range(20):
            Collection.objects.create(name=f"more-{n:02}")
    window = open_window(notes.account)
    on_desk(window)
    window.open("/usage")
    window.shows("more-00", ".side nav")
    below = "document.querySelector('.side a[href$=\"/topics\"]').getBoundingClientRect().bottom"
    assert window.evaluate(f"{below} <= innerHeight")
    window.type(".side input[type=search]", "more-19")
    window.wait("document.querySelectorAll('.side .collection-list a').length === 1")
    window.click(".side .fold-button")
    window.wait("!document.querySelector('.side .collection-list')")


def test_collections_with_a_common_prefix_are_grouped_and_folded(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    from documents.models import Collection
    from foundation.scope import scoped

    with scoped(tenant_id=notes.account.tenant.id):
        for name in ("shop-orders", "shop_items", "shop", "single-one", *"abcdef"):
            Collection.objects.create(name=name)
    window = opened(open_window, notes.account)
    on_desk(window)
    window.open("/usage")
    window.shows("shop-orders", ".side .prefix-group")
    assert window.texts(".side .prefix-group .fold-button") == ["shop"]
    assert window.texts(".side .prefix-group a") == ["shop", "shop_items", "shop-orders"]
    window.click(".side .prefix-group .fold-button")
    window.wait("!document.querySelector('.side .prefix-group a')")
    window.open("/usage")
    window.shows("single-one", ".side .collection-list > a")
    assert window.texts(".side .prefix-group a") == []
    window.type(".side input[type=search]", "orders")
    window.wait("document.querySelectorAll('.side .collection-list a').length === 1")
    window.click(".side .collection-list a", "shop-orders")
    window.shows("shop-orders", "h1")
    window.type(".side input[type=search]", "nothing")
    window.shows("No collection matches", ".side")
    assert violations(window) == []


def test_a_plan_without_a_dedicated_grid_is_not_offered_one(open_window: OpenWindow) -> None:
    from tests.make import make_tenant

    window = open_window(make_tenant(plan="standard"))
    window.open("/grid")
    window.shows("does not include one", "[aria-label=Cluster]")
    assert not any("Create" in text for text in window.texts("[aria-label=Cluster] button"))


def test_the_plan_of_ones_own_machine_shows_no_limits(open_window: OpenWindow) -> None:
    from tests.make import make_tenant

    window = open_window(make_tenant(plan="unlimited"))
    window.open("/usage")
    window.shows("unlimited", ".quota")
    assert not any("1,000,000,000" in text for text in window.texts(".quota"))
