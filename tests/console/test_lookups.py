"""Lookups in the console: documents below those that refer to them, as they are now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console.looking import opened, take_pictures, violations
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.console.conftest import OpenWindow
    from tests.console.window import Window
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

#: The text of rows and of the documents below them, from top to bottom.
LINES = """
[...document.querySelectorAll(".rows > .row")]
  .map((row) => [new DOMMatrix(row.style.transform).m42, row])
  .sort(([a], [b]) => a - b)
  .map(([, row]) => row.getAttribute("aria-label") ?? row.dataset.key)
"""


@pytest.fixture
def tasks(notes: CollectionClient, server: str) -> CollectionClient:
    """Tasks that refer to notes of the same tenant: to one, to two, and to none."""
    from tests.documents.collection import make_collection

    tasks = make_collection(server, account=notes.account, name="tasks")
    tasks.insert_many(
        [
            {"_id": "t1", "about": "n0"},
            {"_id": "t2", "about": ["n2", "n1"]},
            {"_id": "t3"},
        ]
    )
    return tasks


def look_up(window: Window) -> None:
    """Look up the notes that tasks are about."""
    window.click("button[aria-haspopup=menu]", "Look up")
    window.click("[role=menuitem]", "notes")
    window.type("[aria-label='Local field']", "about")


def shows(window: Window, *lines: str) -> None:
    """Wait until these are the lines of the grid."""
    window.wait(f"JSON.stringify({LINES}) === JSON.stringify({list(lines)})")


def test_looked_up_documents_are_shown_and_updated_below_the_referring_ones(
    open_window: OpenWindow, tasks: CollectionClient, notes: CollectionClient, pictures: Path
) -> None:
    window = opened(open_window, tasks.account)
    window.open("/collections/tasks")
    window.wait("document.querySelector('[data-key=t1]')")
    look_up(window)
    several = ("t2", "notes: n2", "notes: n1", "t3", "notes: nothing")
    shows(window, "t1", "notes: n0", *several)
    notes.caller.patch(f"{notes.path}/documents/n0", {"$set": {"title": "Another title"}})
    window.shows("Another title", ".nested")
    notes.caller.delete(f"{notes.path}/documents/n0")
    shows(window, "t1", "notes: nothing", *several)
    take_pictures(window, pictures, "lookup-grid")
    assert violations(window) == []
    window.click("button", "Code")
    window.shows('.lookup("notes", "about", "notes")', "dialog pre")
    window.click("dialog button", "Close")
    window.click("button[aria-label='Remove the lookup']")
    shows(window, "t1", "t2", "t3")
    assert window.complaints == []


def test_undo_restores_the_document_without_its_lookups(
    open_window: OpenWindow, tasks: CollectionClient
) -> None:
    before = tasks.query()
    window = opened(open_window, tasks.account)
    window.open("/collections/tasks")
    window.wait("document.querySelector('[data-key=t1]')")
    look_up(window)
    window.type("[aria-label='Show as']", "about")
    shows(window, "t1", "about: n0", "t2", "about: n2", "about: n1", "t3", "about: nothing")
    window.click("[aria-label='Select all loaded documents']")
    window.click(".selection-bar button", "Delete")
    window.click("dialog button.danger", "Delete")
    wait_until(lambda: tasks.query() == [], what="the documents to go")
    window.click(".toast button", "Undo")
    wait_until(lambda: len(tasks.query()) == 3, what="the documents to come back")
    assert tasks.query() == before


def test_the_playground_runs_lookups_and_shows_code_for_them(
    open_window: OpenWindow, tasks: CollectionClient, pictures: Path
) -> None:
    window = opened(open_window, tasks.account)
    window.open("/playground")
    window.wait("document.querySelector('option')")
    window.evaluate(
        """(() => {
          const select = document.querySelector("[aria-label=Collection]");
          select.value = "tasks";
          select.dispatchEvent(new Event("change", {bubbles: true}));
        })()"""
    )
    look_up(window)
    window.type("[aria-label='Show as']", "notice")
    window.click("button.main", "Run live")
    window.is_live()
    shows(window, "t1", "notice: n0", "t2", "notice: n2", "notice: n1", "t3", "notice: nothing")
    take_pictures(window, pictures, "lookup-playground")
    assert violations(window) == []
    window.click("button", "Code")
    for language, code in (
        ("curl", '"lookup":[{"from":"notes","local":"about","as":"notice"}]'),
        ("WebSocket", '"lookup":[{"from":"notes","local":"about","as":"notice"}]'),
        ("SSE", 'lookup=[{"from":"notes","local":"about","as":"notice"}]'),
        ("JavaScript", '.lookup("notes", "about", "notice")'),
        ("Python", '.lookup("notes", "about", "notice")'),
        ("GraphQL", 'lookup: [{from: "notes", local: "about", as: "notice"}]'),
    ):
        window.click(".segments button", language)
        window.shows(code, "dialog pre")
    take_pictures(window, pictures, "lookup-code")
    window.click("dialog button", "Close")
    window.open("/subscriptions")
    assert window.complaints == []


def test_the_list_of_subscriptions_shows_lookups(
    open_window: OpenWindow, tasks: CollectionClient, server: str, pictures: Path
) -> None:
    from tests.realtime.client import greeted
    from tests.realtime.live.answer import subscribe
    from tests.realtime.live.test_bounds import key_of

    lookup = [{"from": "notes", "local": "about", "as": "notice"}]
    with greeted(server, key_of(tasks)) as client:
        subscribe(client, "watched", collection="tasks", lookup=lookup)
        subscribe(client, "counted", collection="tasks", group={"by": ["about"], "measures": {}})
        window = opened(open_window, tasks.account)
        window.open("/subscriptions")
        window.shows("with notes by about", "td")
        window.shows("grouped by about", "td")
        take_pictures(window, pictures, "lookup-subscriptions")
    assert window.complaints == []
