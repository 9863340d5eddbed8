"""Documents in the console: live in every window, and never interpreted as markup."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow
from tests.console.window import Window
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

TITLE = "[data-key=n1] [aria-colindex='3']"


def grid(open_window: OpenWindow, notes: CollectionClient) -> Window:
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}")
    window.is_live()
    window.wait("document.querySelectorAll('[role=grid] .rows [role=row]').length === 3")
    return window


def test_an_edit_in_one_window_appears_and_flashes_in_another(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    here, there = grid(open_window, notes), grid(open_window, notes)
    here.double_click(TITLE)
    here.type("input.cell-editor", "Edited here")
    here.press("Enter")
    there.shows("Edited here", TITLE)
    there.wait("document.querySelector('[data-key=n1]').className.includes('flash')")
    assert notes.query({"_id": "n1"})[0]["title"] == "Edited here"
    notes.insert({"_id": "n9", "title": "From elsewhere", "rank": 9})
    there.shows("From elsewhere", "[role=row]")
    assert here.complaints + there.complaints == []


def test_escape_discards_what_was_typed_into_a_cell(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = grid(open_window, notes)
    window.double_click(TITLE)
    window.type("input.cell-editor", "Discarded")
    window.press("Escape")
    window.wait("!document.querySelector('input.cell-editor')")
    window.double_click(TITLE)
    window.type("input.cell-editor", "Saved once")
    window.press("Enter")
    window.shows("Saved once", TITLE)
    wait_until(lambda: notes.versions()["n1"] == 2, what="the one write")
    assert notes.query({"_id": "n1"})[0]["title"] == "Saved once"


def test_a_cell_asks_before_it_changes_a_values_type(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = grid(open_window, notes)
    rank = "[data-key=n1] [aria-colindex='4']"
    window.double_click(rank)
    window.type("input.cell-editor", "high")
    window.press("Enter")
    window.shows("This is a number; the new value is text.", ".cell-question")
    window.press("Escape")
    window.double_click(rank)
    window.type("input.cell-editor", "higher")
    window.press("Enter")
    window.shows("This is a number", ".cell-question")
    window.press("Enter")
    window.shows("higher", rank)
    wait_until(lambda: notes.query({"_id": "n1"})[0]["rank"] == "higher", what="the write")
    assert notes.versions()["n1"] == 2


def contains(window: Window, selector: str, text: str) -> None:
    """Wait until an element contains a text."""
    element = f"document.querySelector({json.dumps(selector)})"
    window.wait(f"{element}?.innerText.includes({json.dumps(text)})")


def shows_title(window: Window, title: str) -> None:
    contains(window, TITLE, title)


def shows_question(window: Window, question: str) -> None:
    contains(window, ".cell-question", question)


def test_a_cell_that_another_client_has_changed_is_not_overwritten_without_a_question(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = grid(open_window, notes)
    typed = "document.querySelector('input.cell-editor').value"

    def edit(text: str, theirs: str, *, field: str = "title") -> None:
        """Type into the cell while another client changes the document."""
        window.double_click(TITLE)
        window.type("input.cell-editor", text)
        notes.caller.patch(f"{notes.path}/documents/n1", {"$set": {field: theirs}})
        window.press("Enter")

    edit("Mine", "Theirs")
    shows_question(window, "title was changed to Theirs while you were editing.")
    window.press("Enter")
    assert window.evaluate(typed) == "Mine"
    window.click(".cell-question button", "Reload")
    shows_title(window, "Theirs")
    assert notes.versions()["n1"] == 2

    edit("Mine again", "Theirs again")
    window.click(".cell-question button", "Overwrite")
    shows_title(window, "Mine again")
    wait_until(lambda: notes.query({"_id": "n1"})[0]["title"] == "Mine again", what="the write")

    edit("Beside", "other", field="kind")
    shows_title(window, "Beside")
    wait_until(lambda: notes.query({"_id": "n1"})[0]["title"] == "Beside", what="the write")
    assert notes.query({"_id": "n1"})[0]["kind"] == "other"
    assert not window.evaluate("document.querySelector('.cell-question')")
    assert window.complaints == []


def test_a_rejected_value_stays_in_its_cell_with_the_field_and_the_reason(
    open_window: OpenWindow, server: str
) -> None:
    from tests.documents.collection import make_collection

    schema = {"properties": {"rank": {"type": "number", "minimum": 0}}}
    ranked = make_collection(server, schema=schema)
    ranked.insert_many([{"_id": f"n{n}", "rank": n} for n in range(3)])
    window = grid(open_window, ranked)
    typed = "document.querySelector('input.cell-editor').value"

    window.double_click(TITLE)
    window.type("input.cell-editor", "-5")
    window.press("Enter")
    shows_question(window, "rank: expected at least 0")
    assert window.evaluate(typed) == "-5"
    window.type("input.cell-editor", "-6")
    window.press("Enter")
    shows_question(window, "rank: expected at least 0")
    assert window.evaluate(typed) == "-6"
    window.type("input.cell-editor", "5")
    window.press("Enter")
    shows_title(window, "5")
    wait_until(lambda: ranked.query({"_id": "n1"})[0]["rank"] == 5, what="the write")

    window.double_click(TITLE)
    window.type("input.cell-editor", "-7")
    window.press("Enter")
    shows_question(window, "rank: expected at least 0")
    window.click(".cell-question button", "Discard")
    shows_title(window, "5")


#: Without events, the page only finds out about other writes when its own is refused.
IGNORE_EVENTS = """
const { set } = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage");
Object.defineProperty(WebSocket.prototype, "onmessage", {
  set(listen) {
    set.call(this, (event) => window.ignoresEvents || listen(event));
  },
});
"""


def test_a_write_that_the_window_has_not_received_is_not_overwritten(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.page.call("Page.addScriptToEvaluateOnNewDocument", source=IGNORE_EVENTS)
    window.open(f"/collections/{notes.name}")
    shows_title(window, "Note 1")
    window.evaluate("window.ignoresEvents = true")
    notes.caller.patch(f"{notes.path}/documents/n1", {"$set": {"title": "Theirs"}})
    window.double_click(TITLE)
    window.type("input.cell-editor", "Mine")
    window.press("Enter")
    shows_question(window, "title was changed to Theirs while you were editing.")
    assert notes.versions()["n1"] == 2
    window.click(".cell-question button", "Overwrite")
    wait_until(lambda: notes.query({"_id": "n1"})[0]["title"] == "Mine", what="the write")


def test_a_value_beside_the_grid_is_not_overwritten_without_a_question(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = grid(open_window, notes)
    window.click("[data-key=n1] [aria-colindex='2']")
    window.click("[title='Edit title']")
    window.type(".panel input.cell-editor", "Mine")
    notes.caller.patch(f"{notes.path}/documents/n1", {"$set": {"title": ""}})
    window.press("Enter")
    shows_question(window, "title was changed to an empty text while")
    window.click(".panel .cell-question button", "Overwrite")
    shows_title(window, "Mine")
    wait_until(lambda: notes.query({"_id": "n1"})[0]["title"] == "Mine", what="the write")


def test_a_cell_that_is_being_edited_stays_with_its_document(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = grid(open_window, notes)
    window.double_click(TITLE)
    window.type("input.cell-editor", "Edited")
    notes.insert({"_id": "a", "title": "Before all others", "rank": 0})
    window.wait("document.querySelector('.rows [data-key]').dataset.key === 'a'")
    window.press("Enter")
    shows_title(window, "Edited")
    wait_until(lambda: notes.query({"_id": "n1"})[0]["title"] == "Edited", what="the write")
    assert notes.query({"_id": "n0"})[0]["title"] == "Note 0"


def test_deleted_documents_can_be_restored(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = grid(open_window, notes)
    window.click("[data-key=n0] input[type=checkbox]")
    window.click("[data-key=n2] input[type=checkbox]")
    window.click(".selection-bar button", "Delete")
    window.click("dialog button.danger", "Delete")
    window.shows("2 documents deleted", ".toast")
    wait_until(lambda: notes.ids() == ["n1"], what="the deletion")
    window.click(".toast button", "Undo")
    window.shows("Note 2", "[data-key=n2]")
    wait_until(lambda: notes.ids() == ["n0", "n1", "n2"], what="what was deleted")


def test_a_filter_narrows_the_list_and_new_matches_appear(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = grid(open_window, notes)
    window.click("button", "Filter")
    window.click("[role=menuitem]", "rank")
    window.type(".condition .value-text", "2")
    window.wait("document.querySelectorAll('.rows [role=row]').length === 1")
    window.is_live()
    notes.caller.patch(f"{notes.path}/documents/n0", {"$set": {"rank": 2}})
    window.shows("Note 0", "[role=row]")
    window.click("button", "Code")
    window.shows('filter({"rank":2})', "dialog pre")
    window.click(".segments button", "curl")
    window.shows('"filter":{"rank":2}', "dialog pre")


def test_scripts_in_documents_stay_text(open_window: OpenWindow, notes: CollectionClient) -> None:
    evil = {
        "_id": "<svg onload=hacked=1>",
        "title": "<img src=x onerror=hacked=1>",
        "<script>hacked=1</script>": 1,
        "link": "javascript:hacked=1",
        "data": "data:text/html,<script>hacked=1</script>",
        "good": "https://example.com/<b>",
        "deep": {"html": ["<script>hacked=1</script>"]},
    }
    notes.insert(evil)
    window = grid_of_four(open_window, notes)
    window.shows("<img src=x", "[role=row]")
    window.click("[data-key^='<svg'] [aria-colindex='2']")
    window.shows("<script>", ".tree")
    window.click(".panel button", "JSON")
    window.wait("document.querySelector('.editor-host')?.shadowRoot?.querySelector('.cm-content')")
    assert window.evaluate("typeof hacked") == "undefined"
    links = window.evaluate(
        "[...document.querySelectorAll('.grid a, .panel a')].map((a) => a.href)"
    )
    assert links == ["https://example.com/%3Cb%3E"]
    assert window.complaints == []


def grid_of_four(open_window: OpenWindow, notes: CollectionClient) -> Window:
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}")
    window.wait("document.querySelectorAll('[role=grid] .rows [role=row]').length === 4")
    return window


def test_a_mistake_is_shown_where_it_is(open_window: OpenWindow, notes: CollectionClient) -> None:
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}/indexes")
    window.click("button", "New index")
    window.type("dialog input.mono", "a, $b")
    window.click("dialog button.main", "Build")
    window.shows("indexes/0/fields/1", "dialog [role=alert]")


@pytest.mark.long
def test_ten_thousand_rows_can_be_scrolled_while_the_page_has_few_of_them(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.insert_many([{"_id": f"z{n:05}", "title": f"Row {n}"} for n in range(9_997)])
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}")
    window.shows("10,000 documents", "[data-testid=count]")
    scroll = "const g = document.querySelector('[role=grid]'); g.scrollTop = g.scrollHeight"
    for _ in range(4):
        window.evaluate(f"(() => {{ {scroll} }})()")
        window.is_live()
        assert window.evaluate("document.querySelectorAll('.rows [role=row]').length") < 100
        window.evaluate("new Promise((resolve) => requestAnimationFrame(resolve))")
    window.wait(f"(() => {{ {scroll}; return document.querySelector('[data-key=z09996]'); }})()")
