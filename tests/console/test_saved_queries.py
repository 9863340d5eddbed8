"""Queries are saved, drawn as charts and pinned to the overview, where they stay live."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow
from tests.console.looking import opened, take_pictures, violations
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient
    from tests.make import TenantAccount

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

SAVE = "[aria-label='Save query']"
BARS = "document.querySelectorAll('.plot-area rect').length"


def save(window: Window, name: str, *, pinned: bool = False) -> None:
    """Save the query that is in view."""
    window.click(SAVE)
    window.type("dialog input.input", name)
    if pinned:
        window.click("dialog input[type=checkbox]")
    window.click("dialog button.main", "Save")
    window.shows(f"{name} saved.", ".toast")


def make_saved(server: str, account: TenantAccount, name: str, **fields: object) -> None:
    from tests.caller import with_key

    body = {"name": name, "kind": "collection", "source": "notes", "query": {}, **fields}
    answer = with_key(server, account.admin_key).post(
        f"/api/v1/tenants/{account.slug}/saved-queries", body
    )
    assert answer.status_code == 201, answer.text


def test_a_query_is_drawn_saved_opened_and_changed(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.insert_many([{"_id": f"g{n}", "kind": "ab"[n % 2], "price": n} for n in range(6)])
    window = open_window(notes.account)
    window.open("/playground")
    window.wait("document.querySelector('option')")
    window.write(".asking .editor-host", '{"price": {"$gte": 0}}')
    window.type("[aria-label='Group by']", "kind")
    window.type("[aria-label=Measures]", "count, total: sum(price)")
    window.click("button.main", "Run live")
    window.click(".answer-head button", "Chart")
    window.wait(f"{BARS} === 2")
    window.click(".segments button", "Line")
    window.wait("document.querySelectorAll('.plot-area polyline').length === 1")
    save(window, "Prices")

    window.open("/saved")
    window.click("td a", "Prices")
    window.wait("location.search.startsWith('?saved=')")
    window.wait("document.querySelectorAll('.plot-area polyline').length === 1")
    inputs = "document.querySelector('[aria-label=\"{}\"]').value"
    assert window.evaluate(inputs.format("Group by")) == "kind"
    assert window.evaluate(inputs.format("Measures")) == "count, total: sum(price)"
    window.click(".segments button", "Number")
    save(window, "Prices")
    window.open("/saved")
    window.shows("number", "td")
    assert len(window.texts("tbody tr")) == 1


def test_pinned_charts_stay_live_and_can_be_moved_and_removed(
    open_window: OpenWindow, notes: CollectionClient, server: str
) -> None:
    group = {"by": ["kind"], "measures": {"n": {"op": "count"}}}
    make_saved(
        server,
        notes.account,
        "Kinds",
        query={"filter": {"kind": {"$exists": True}}, "group": group},
        chart={"type": "bar", "x": "kind", "y": "n"},
        pin=0,
    )
    make_saved(server, notes.account, "Ranks", chart={"type": "number", "y": "rank"}, pin=1)
    window = open_window(notes.account)
    window.open("/overview")
    window.shows("3", "[data-pin=Ranks] strong")
    window.shows("No rows.", "[data-pin=Kinds]")
    notes.insert_many([{"_id": f"k{n}", "kind": "abc"[n], "rank": 10} for n in range(3)])
    window.wait(f"{BARS} === 3")
    window.shows("33", "[data-pin=Ranks] strong")

    pins = "[...document.querySelectorAll('[data-pin]')].map((e) => e.dataset.pin).join()"
    window.click("[aria-label='Actions for Kinds']")
    window.click("[role=menuitem]", "Move back")
    window.wait(f"{pins} === 'Ranks,Kinds'")
    window.click("[aria-label='Actions for Ranks']")
    window.click("[role=menuitem]", "Remove")
    window.wait(f"{pins} === 'Kinds'")
    window.click("[data-pin] a", "Kinds")
    window.wait("location.pathname.endsWith('/playground')")
    assert window.complaints == []


def test_a_saved_query_is_renamed_deleted_and_in_the_search(
    open_window: OpenWindow, notes: CollectionClient, server: str
) -> None:
    make_saved(server, notes.account, "First", query={"filter": {"rank": 2}})
    window = open_window(notes.account)
    window.open("/saved")
    window.click("[aria-label='Actions for First']")
    window.click("[role=menuitem]", "Rename")
    window.type("dialog input", "Second")
    window.click("dialog button.main", "Rename")
    window.shows("Second", "td")
    window.press("k", ctrl=True)
    window.type(".palette input", "seco")
    window.shows("Second", "[role=option]")
    window.press("Enter")
    window.wait("document.querySelector('[data-key=n2]')")
    window.open("/saved")
    window.click("[aria-label='Actions for Second']")
    window.click("[role=menuitem]", "Delete")
    window.click("dialog button.main", "Delete")
    window.shows("No saved queries yet")


def test_values_of_a_chart_are_read_with_the_keyboard(
    open_window: OpenWindow, notes: CollectionClient, server: str
) -> None:
    chart = {"type": "line", "x": "title", "y": "rank"}
    make_saved(server, notes.account, "Ranks", chart=chart, pin=0)
    window = open_window(notes.account)
    window.open("/overview")
    window.wait("document.querySelector('.plot-area polyline')")
    window.evaluate("document.querySelector('.plot-area').focus()")
    text = "document.querySelector('.plot-area').getAttribute('aria-valuetext')"
    for key, value in (("ArrowRight", "Note 0: rank 0"), ("ArrowRight", "Note 1: rank 1")):
        window.press(key)
        window.wait(f"{text} === {value!r}")
    window.press("ArrowLeft")
    window.wait(f"{text} === 'Note 0: rank 0'")


def test_saved_queries_of_every_kind_are_accessible_and_photographed(
    open_window: OpenWindow, dedicated: TenantAccount, server: str, pictures: Path
) -> None:
    from tests.aggregates.aggregate_client import make_aggregate
    from tests.aggregates.test_events import request
    from tests.analytics.dataset_client import make_dataset
    from tests.documents.collection import make_collection

    columns = {"id": "int64", "author": "string", "likes": "int64"}
    notes = make_collection(server, account=dedicated, name="notes")
    notes.insert_many([{"_id": f"n{n}", "title": f"Note {n}", "rank": n * n} for n in range(9)])
    requests_5m = make_aggregate(server, account=dedicated)
    requests_5m.add(*(request(name, 5 * n) for n, name in enumerate(("acme", "bolt", "core"))))
    posts = make_dataset(
        server,
        account=dedicated,
        name="posts",
        tables={"posts": {"columns": columns, "key": ["id"]}},
    )
    posts.insert("posts", *({"id": n, "author": "ab"[n % 2], "likes": n} for n in range(20)))
    area = {"type": "area", "x": "title", "y": "rank"}
    make_saved(server, dedicated, "Ranks", chart=area, pin=0)
    make_saved(
        server,
        dedicated,
        "Requests",
        kind="aggregate",
        source="requests_5m",
        query={"group_by": ["customer"]},
        chart={"type": "bar", "x": "customer", "y": "count"},
        pin=1,
    )
    by_author = {
        "group_by": ["author"],
        "aggregates": {"likes": {"op": "sum", "column": "likes"}},
        "order": [["author", 1]],
    }
    make_saved(
        server,
        dedicated,
        "Likes",
        kind="dataset",
        source="posts",
        query={"table": "posts", "freshness": "0", **by_author},
        chart={"type": "table"},
        pin=2,
    )
    window = opened(open_window, dedicated)
    window.open("/overview")
    window.wait("document.querySelector('[data-pin=Ranks] polyline')")
    window.wait("document.querySelectorAll('[data-pin=Requests] rect').length === 3")
    window.shows("90", "[data-pin=Likes] td")
    assert violations(window) == []
    take_pictures(window, pictures, "overview-pinned")
    window.click("[data-pin] a", "Likes")
    window.wait("document.querySelector('.chart-builder table')")
    assert violations(window) == []
    take_pictures(window, pictures, "chart-builder")
    window.open("/saved")
    window.shows("Likes", "td")
    assert violations(window) == []
    take_pictures(window, pictures, "saved")
    assert window.complaints == []
