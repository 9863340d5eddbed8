"""The error log in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.caller import problem
from tests.console.conftest import OpenWindow

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_a_refused_call_appears_with_what_to_do_about_it(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/errors")
    window.shows("No errors")
    answer = notes.caller.post(f"{notes.path}/query", {"filter": {"$where": "<b>1</b>"}})
    refusal = problem(answer, 400, "unsupported_operator")
    window.shows("unsupported_operator", "table")
    notes.caller.post(f"{notes.path}/documents", {"_id": "n1"})
    window.shows("duplicate_id", "table")

    window.type("input[type=search]", refusal["request_id"])
    window.wait("document.querySelectorAll('tbody tr').length === 1")
    window.click("table button[aria-expanded]")
    window.shows("See the query language", ".remedy")
    window.shows(refusal["request_id"], ".facts")
    assert window.complaints == []
