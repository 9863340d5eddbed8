"""What people do in the console from beginning to end, with everything real behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow
from tests.console.window import Window
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.documents.collection import MadeCollection

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def choose_file(window: Window, selector: str, file: Path) -> None:
    """Choose a file, as the browser's own dialogue does."""
    expression = f"document.querySelector({json.dumps(selector)})"
    found = window.page.call("Runtime.evaluate", expression=expression)["result"]["objectId"]
    window.page.call("DOM.setFileInputFiles", objectId=found, files=[str(file)])


def test_a_file_is_imported_with_what_was_refused_and_exported_again(
    open_window: OpenWindow, notes: MadeCollection, tmp_path: Path
) -> None:
    lines = [{"_id": f"i{number}", "title": f"Imported {number}"} for number in range(2_000)]
    file = tmp_path / "notes.ndjson"
    file.write_text("\n".join(json.dumps(line) for line in [*lines, {"_id": "n1"}]))
    window = open_window(notes.made)
    window.open(f"/collections/{notes.name}")
    window.is_live()
    window.click("button[aria-label=More]")
    window.click("[role=menuitem]", "Import")
    window.wait("document.querySelector('dialog input[type=file]')")
    choose_file(window, "dialog input[type=file]", file)
    window.sees("notes.ndjson", "dialog button")
    window.click("dialog button.main", "Import")
    window.sees("2000 written, 0 skipped, 1 refused", "dialog [role=status]")
    window.sees("line 2001", "dialog [role=status]")
    window.click("dialog footer button", "Close")
    window.sees("2,003 documents", "[data-testid=count]")

    window.page.call(
        "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "out")
    )
    window.click("button[aria-label=More]")
    window.click("[role=menuitem]", "Export")
    window.sees("notes.ndjson exported", ".toast")
    saved = tmp_path / "out" / "notes.ndjson"
    wait_until(saved.exists, what="the file to be saved")
    assert len(saved.read_text().splitlines()) == 2_003
    assert window.complaints == []
