"""Every page links to its documentation, and the keyboard shortcuts are listed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow
from tests.console.looking import ROOT, opened, violations

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

HELP = "dialog[aria-label='Keyboard shortcuts']"
DOCS_PAGES = json.loads((ROOT / "console/src/shell/docs-pages.json").read_text())


def test_the_docs_link_follows_the_open_page_and_tab(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    for path, target in {
        "/keys": "/docs/guide/authentication/#api-keys",
        f"/collections/{notes.name}": "/docs/guide/documents/",
        f"/collections/{notes.name}/schema": "/docs/guide/collections/#schema",
    }.items():
        window.open(path)
        window.wait(f"document.querySelector('.docs-link')?.getAttribute('href') === {target!r}")


def test_every_page_of_the_sidebar_has_a_page_of_the_documentation(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/usage")
    window.wait(f"document.querySelector('aside a[href$=\"/collections/{notes.name}\"]')")
    links = window.evaluate("[...document.querySelectorAll('aside nav a')].map((a) => a.pathname)")
    below = {f"/{link.split('/')[3]}" for link in links}
    assert below <= set(DOCS_PAGES)


def test_a_question_mark_lists_the_shortcuts_unless_it_is_typed(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = opened(open_window, notes.account)
    window.open(f"/collections/{notes.name}")
    window.is_live()
    window.press("?")
    window.shows("pages, collections, tenants and commands", HELP)
    assert violations(window) == []
    window.press("Escape")
    window.wait(f"!document.querySelector({HELP!r})")
    window.press("k", ctrl=True)
    window.type("dialog input", "shortc")
    window.press("?")
    assert not window.evaluate(f"Boolean(document.querySelector({HELP!r}))")
    window.type("dialog input", "shortcuts")
    window.shows("Keyboard shortcuts", "dialog [role=option]")
    window.press("Enter")
    window.shows("by 20 rows", HELP)
    assert window.complaints == []
