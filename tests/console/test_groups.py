"""Results in the playground: live groups, the same query as code, and results as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.console.conftest import OpenWindow
from tests.console.looking import take_pictures, violations
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

ROWS = ".groups tbody tr"
#: The menu opens below its button.
NEAR = """
(([menu, button]) => Math.abs(menu.top - button.bottom) < 20
  && Math.min(Math.abs(menu.left - button.left), Math.abs(menu.right - button.right)) < 20)(
  [".menu:popover-open", "button[title='Export the result']"]
    .map((name) => document.querySelector(name).getBoundingClientRect()))
"""
#: The text of the rows, without the line breaks of the bars.
CELLS = """
[...document.querySelectorAll(".groups tbody tr")]
  .map((row) => [...row.cells].map((cell) => cell.textContent).join(" "))
"""


def test_groups_are_watched_flash_and_become_code(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.insert_many([{"_id": f"g{n}", "kind": "ab"[n % 2], "price": n} for n in range(6)])
    window = open_window(notes.account)
    window.open("/playground")
    window.wait("document.querySelector('option')")
    window.type("[aria-label='Group by']", "kind")
    window.type("[aria-label=Measures]", "count, total: sum(price)")
    window.type("[aria-label=Sort]", "-total")
    window.click("button.main", "Run live")
    window.is_live()
    assert window.evaluate(CELLS) == ["b 3 9", "a 3 6", "null 3 0"]
    notes.insert({"_id": "g9", "kind": "a", "price": 10})
    window.wait(f"({CELLS})[0] === 'a 4 16'")
    window.wait(f"document.querySelector({ROWS!r}).className.includes('flash')")
    window.click("button", "Code")
    window.shows('.group(["kind"], {"count":{"op":"count"}', "dialog pre")
    window.click(".segments button", "GraphQL")
    window.shows('total: {op: "sum", field: "price"}', "dialog pre")
    window.click("dialog button", "Close")
    window.type("[aria-label=Measures]", "guess(price)")
    window.click("button.main", "Run live")
    window.shows("a measure is count", "[role=alert]")
    assert window.complaints == []


def test_the_result_shown_is_saved_as_a_file_of_each_format(
    open_window: OpenWindow, notes: CollectionClient, tmp_path: Path, pictures: Path
) -> None:
    at = {"$date": "2026-11-21T08:30:00Z"}
    notes.insert_many([{"_id": f"x{n}", "price": n, "at": at} for n in range(3)])
    window = open_window(notes.account)
    window.page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    window.open("/playground")
    window.wait("document.querySelector('option')")
    window.write(".asking .editor-host", json.dumps({"at": at, "price": {"$gt": 0}}))
    window.type("[aria-label=Sort]", "-price")
    window.click("button.main", "Run live")
    window.is_live()

    def saved(title: str, ending: str) -> Path:
        window.click("button[title='Export the result']")
        if title == "CSV":
            window.wait(NEAR)
            assert violations(window) == []
            take_pictures(window, pictures, "playground-export", desk=(1440, 900))
        window.click("[role=menuitem]", title)
        window.shows(f"notes.{ending} exported", ".toast")
        file = tmp_path / f"notes.{ending}"
        wait_until(lambda: file.exists() and file.stat().st_size > 0, what="the file")
        return file

    documents = [{"_id": f"x{n}", "price": {"$numberInt": str(n)}} for n in (2, 1)]
    assert saved("CSV", "csv").read_text().splitlines() == [
        "_id,price,at",
        "x2,2,2026-11-21T08:30:00Z",
        "x1,1,2026-11-21T08:30:00Z",
    ]
    array = json.loads(saved("JSON", "json").read_text())
    lines = [json.loads(line) for line in saved("NDJSON", "ndjson").read_text().splitlines()]
    assert array == lines
    assert [{"_id": d["_id"], "price": d["price"]} for d in array] == documents
    table = pq.read_table(saved("Parquet", "parquet"))
    assert table.column("price").to_pylist() == [2, 1]
    assert str(table.schema.field("at").type) == "timestamp[ms, tz=UTC]"
    assert window.complaints == []
