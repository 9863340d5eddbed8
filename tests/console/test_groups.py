"""Groups in the playground: rows as they change, and the same question as code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow

if TYPE_CHECKING:
    from tests.documents.collection import MadeCollection

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

ROWS = ".groups tbody tr"
#: What stands in the rows, without what the bars do to the lines.
CELLS = """
[...document.querySelectorAll(".groups tbody tr")]
  .map((row) => [...row.cells].map((cell) => cell.textContent).join(" "))
"""


def test_groups_are_watched_flash_and_become_code(
    open_window: OpenWindow, notes: MadeCollection
) -> None:
    notes.insert_many([{"_id": f"g{n}", "kind": "ab"[n % 2], "price": n} for n in range(6)])
    window = open_window(notes.made)
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
    window.sees('.group(["kind"], {"count":{"op":"count"}', "dialog pre")
    window.click(".segments button", "GraphQL")
    window.sees('total: {op: "sum", field: "price"}', "dialog pre")
    window.click("dialog button", "Close")
    window.type("[aria-label=Measures]", "guess(price)")
    window.click("button.main", "Run live")
    window.sees("a measure is count", "[role=alert]")
    assert window.complaints == []
