"""What a page shows is in its address: Back, reload and a shared link restore it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from tests.console.conftest import OpenWindow
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient
    from tests.make import TenantAccount

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

KEYS = "[...document.querySelectorAll('.rows [data-key]')].map((row) => row.dataset.key)"
SORT = "document.querySelector('[aria-label=Sort]').value"


def shows(window: Window, *keys: str) -> None:
    """Wait until the grid has exactly these documents, in this order."""
    window.wait(f"({KEYS}).join() === {json.dumps(','.join(keys))}")


def panel_shows(window: Window, text: str) -> None:
    """Wait until the panel of the opened document contains a text."""
    element = "document.querySelector('.panel')"
    window.wait(f"{element}?.innerText.includes({json.dumps(text)})")


def open_again(open_window: OpenWindow, window: Window, account: TenantAccount) -> Window:
    """Open the address of a window in another one, as a shared link."""
    other = open_window(account)
    other.page.open(window.evaluate("location.href"))
    return other


def test_back_reload_and_a_link_restore_the_filter_and_the_sort_of_the_grid(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}")
    shows(window, "n0", "n1", "n2")
    window.click("[role=columnheader] button", "rank")
    window.click("[role=columnheader] button", "rank")
    shows(window, "n2", "n1", "n0")
    window.click("button", "Filter")
    window.click("[role=menuitem]", "rank")
    window.select(".condition select", ">=")
    window.type(".condition .value-text", "1")
    shows(window, "n2", "n1")

    window.page.reload()
    shows(window, "n2", "n1")
    assert window.evaluate("document.querySelector('.condition .value-text').value") == "1"
    shows(open_again(open_window, window, notes.account), "n2", "n1")

    window.page.back()
    window.wait("document.querySelector('.condition select').value === '=='")
    window.page.back()
    window.wait("!document.querySelector('.condition')")
    shows(window, "n2", "n1", "n0")
    window.page.back()
    window.page.back()
    shows(window, "n0", "n1", "n2")
    assert window.evaluate("location.search") == ""
    assert window.complaints == []


def test_a_filter_that_cannot_be_read_yet_leaves_the_last_one_in_the_address(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}")
    window.click("button", "Filter")
    window.click("[role=menuitem]", "As a query")
    window.type(".filter-text", '{"title": "50 %41+&#"}')
    window.wait("!document.querySelector('[role=grid]')")
    window.type(".filter-text", '{"rank": {"$lt": 1}}')
    shows(window, "n0")
    window.type(".filter-text", '{"rank": {"$lt"')
    window.wait("document.querySelector('.filter-text[aria-invalid=true]')")
    window.page.reload()
    shows(window, "n0")
    text = "document.querySelector('.filter-text').value"
    assert window.evaluate(text) == '{"rank": {"$lt": 1}}'
    window.type(".filter-text", '{"title": "50 %41+&#"}')
    window.page.reload()
    window.wait(
        f"document.querySelector('.filter-text') && {text} === '{{\"title\": \"50 %41+&#\"}}'"
    )


def test_the_document_beside_the_grid_and_its_view_are_in_the_address(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.insert_many([{"_id": 5, "title": "A number"}, {"_id": "5", "title": "A text"}])
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}")
    window.click("[data-key=n1] [aria-colindex='2']")
    panel_shows(window, "n1")
    window.click(".panel button", "JSON")
    window.wait("document.querySelector('.panel .json-view')")
    window.page.reload()
    window.wait("document.querySelector('.panel .json-view')")
    panel_shows(window, "n1")
    window.page.back()
    panel_shows(window, "Note 1")
    window.page.back()
    window.wait("!document.querySelector('.panel')")
    for text, title in (("5", "A number"), ('"5"', "A text")):
        window.open(f"/collections/{notes.name}?{urlencode({'document': text})}")
        panel_shows(window, title)


def test_a_document_that_is_not_among_the_rows_can_be_changed_through_its_link(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}?where=rank+eq+0&document=n2")
    panel_shows(window, "Note 2")
    shows(window, "n0")
    window.click("[title='Edit title']")
    window.type(".panel input.cell-editor", "Changed")
    window.press("Enter")
    window.wait("document.querySelector('.toast')?.innerText.includes('title of n2 changed.')")
    assert notes.query({"_id": "n2"})[0]["title"] == "Changed"


def test_the_grid_opens_at_the_row_that_was_in_view(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.insert_many([{"_id": f"z{n:04}", "title": f"Row {n}"} for n in range(600)])
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}?row=500")
    window.wait("document.querySelector('[data-key=z0497]')")
    window.wait("!document.querySelector('[data-key=n0]')")
    window.evaluate("document.querySelector('[role=grid]').scrollTop -= 34 * 100")
    window.wait("location.search === '?row=400'")
    window.page.reload()
    window.wait("document.querySelector('[data-key=z0397]')")
    window.wait("!document.querySelector('[data-key=n0]')")


@pytest.mark.parametrize(
    "search",
    [
        "where=%ff&where=rank&where=rank+drop+1&where=%25+eq+1",
        "filter=[1]",
        "filter={",
        "sort=&sort=-",
        "lookup=%25zz&lookup=",
        "row=-1",
        "row=1e9",
        'document={"$gt":""}',
        "document=[1]&view=none",
        "unknown=1",
    ],
)
def test_a_parameter_that_cannot_be_read_is_ignored(
    open_window: OpenWindow, notes: CollectionClient, search: str
) -> None:
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}?{search}")
    shows(window, "n0", "n1", "n2")
    assert window.evaluate("document.querySelectorAll('.condition, .panel').length") == 0
    assert window.complaints == []


def test_back_reload_and_a_link_restore_the_query_and_the_view_of_the_playground(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/playground")
    shows(window, "n0", "n1", "n2")
    window.type("[aria-label=Sort]", "-rank")
    window.click("button.main", "Run live")
    shows(window, "n2", "n1", "n0")
    window.write(".asking .editor-host", '{"rank": {"$gte": 1}}')
    window.type("[aria-label=Limit]", "1")
    window.click("button.main", "Run live")
    shows(window, "n2")
    window.click(".answer-head button", "Explain")

    explains = "document.querySelector('.answer-head [aria-pressed=true]').innerText === 'Explain'"
    window.page.reload()
    window.wait(f"document.querySelector('.answer-head') && {explains}")
    assert window.evaluate("document.querySelector('[aria-label=Limit]').value") == "1"
    other = open_again(open_window, window, notes.account)
    other.wait(f"document.querySelector('.answer-head') && {explains}")

    window.page.back()
    shows(window, "n2")
    window.page.back()
    shows(window, "n2", "n1", "n0")
    assert window.evaluate(SORT) == "-rank"
    window.page.back()
    shows(window, "n0", "n1", "n2")
    assert window.evaluate(SORT) == ""
    assert window.complaints == []


def test_the_chart_of_the_playground_is_in_the_address(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/playground?view=chart&chart=area+title+rank+")
    window.wait("document.querySelector('.plot-area')")
    pressed = "[...document.querySelectorAll('.segments [aria-pressed=true]')].at(-1).innerText"
    assert window.evaluate(pressed) == "Area"
    window.click(".segments button", "Number")
    window.page.reload()
    window.wait(f"document.querySelector('.chart-builder') && {pressed} === 'Number'")


def test_parameters_of_the_playground_that_cannot_be_read_are_ignored(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    for search in (
        "filter={&measures=sum&limit=-3&view=none&chart=pie",
        "filter=[]&measures=(&limit=1e3&lookup=%25&chart=%25+a+b+c",
    ):
        window.open(f"/playground?collection={notes.name}&{search}")
        shows(window, "n0", "n1", "n2")
        assert window.evaluate("document.querySelector('[aria-label=Limit]').value") == "20"
    window.open("/playground?collection=dropped")
    window.wait("document.querySelector('[aria-label=Collection]')?.value === 'dropped'")
    window.wait("document.querySelector('.answer [role=alert]')")
    assert window.complaints == []


def test_an_unknown_tab_shows_the_first_one(
    open_window: OpenWindow, dedicated: TenantAccount, server: str
) -> None:
    from tests.analytics.dataset_client import make_dataset
    from tests.documents.collection import make_collection

    make_collection(server, account=dedicated, name="notes")
    tables = {"posts": {"columns": {"id": "int64"}, "key": ["id"]}}
    make_dataset(server, account=dedicated, name="posts", tables=tables)
    window = open_window(dedicated)
    current = "document.querySelector('.tabs [aria-current=page]')"
    for path, title in (("collections/notes", "Documents"), ("datasets/posts", "Pipeline")):
        for tab in ("none", "constructor", "%3Cb%3E"):
            window.open(f"/{path}/{tab}")
            window.wait(f"{current}?.innerText === {title!r}")
            window.wait("document.querySelector('.page-body')?.innerText.trim()")
    window.open("/collections/notes/schema/none")
    window.wait("document.body.innerText.includes('Page not found')")
