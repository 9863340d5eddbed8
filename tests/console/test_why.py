"""A member asks in the console why a client received a change, or did not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console.looking import opened, take_pictures, violations
from tests.realtime.client import greeted
from tests.realtime.live.answer import subscribe
from tests.realtime.live.test_bounds import key_of

if TYPE_CHECKING:
    from tests.console.conftest import OpenWindow
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_the_path_of_a_change_is_explained_stage_by_stage(
    open_window: OpenWindow, notes: CollectionClient, server: str, pictures: Path
) -> None:
    query_filter = {"archived": {"$ne": True}, "rank": {"$gte": 5}}
    with greeted(server, key_of(notes)) as client:
        answer = subscribe(client, "watched", collection=notes.name, filter=query_filter)
        notes.insert({"_id": "high", "rank": 7})
        answer.until_shows([{"_id": "high", "rank": 7}])
        notes.insert({"_id": "low", "rank": 2})
        window = opened(open_window, notes.account)
        window.open("/subscriptions")
        window.click("button[aria-label=Details]")
        for document, stage, text, verdict in (
            ("low", "stopped", "`rank` is 2; expected: at least 5.", "no match"),
            ("high", "passed", "event 1", "delivered"),
        ):
            window.type(".why input", document)
            window.click(".why button", "Why?")
            window.wait(f"document.querySelector('.why-steps > li.{stage}:last-child')")
            window.shows(text.replace("`", ""), within=".why-steps > li:last-child")
            window.shows(verdict, within=".why-story .badge")
            take_pictures(window, pictures, f"why-{document}", desk=(1280, 1500), phone=(390, 1900))
        assert violations(window) == []
        assert window.complaints == []
