"""The request log in the console."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.caller import problem, with_key
from tests.console.conftest import OpenWindow
from tests.console.looking import opened, take_pictures, violations
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

ROWS = "document.querySelectorAll('tbody tr').length"
WIDE = (1920, 1080)


def search_of(window: Window) -> str:
    address: str = window.evaluate("location.search")
    return address


def test_requests_arrive_and_are_narrowed_by_the_address(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/requests")
    window.shows("documents:bulk", "table")
    window.shows("Live", "[role=status]")
    notes.caller.post(f"{notes.path}/documents", {"_id": "n1"})
    window.shows("duplicate_id", "table")

    window.type("input[aria-label=Status]", "4xx")
    window.wait(f"{ROWS} === 1")
    window.type("input[aria-label=Route]", "/Documents")
    window.wait("location.search.includes('route=')")
    assert search_of(window) == "?status=4xx&route=%2FDocuments"
    window.open(f"/requests{search_of(window)}")
    window.shows("409", "table")
    window.wait(f"{ROWS} === 1")
    window.type("input[aria-label=Route]", "/nowhere")
    window.shows("No matching requests")
    window.click("button", "Clear the filters")
    window.wait(f"{ROWS} > 1")
    assert search_of(window) == ""
    assert window.complaints == []


def test_callers_are_shown_by_their_names(
    open_window: OpenWindow, notes: CollectionClient, server: str
) -> None:
    admin = with_key(server, notes.account.admin_key)
    keys = admin.get(f"/api/v1/tenants/{notes.account.slug}/api-keys").json()["items"]
    window = open_window(notes.account)
    window.open("/requests?route=%2Fdocuments")
    window.shows("documents:bulk", "table")
    window.wait(
        f"{json.dumps([key['name'] for key in keys])}"
        ".includes(document.querySelector('tbody .caller').innerText)"
    )


def test_a_period_is_chosen(open_window: OpenWindow, notes: CollectionClient) -> None:
    window = open_window(notes.account)
    window.open("/requests?period=custom&since=2020-01-01T00:00:00.000Z&until=2020-01-02T00:00:00Z")
    window.shows("No matching requests")
    shown = window.evaluate(
        "[...document.querySelectorAll('.moment input')].every((e) => e.value.startsWith('20'))"
    )
    assert shown
    choose = (
        "const choice = document.querySelector('[aria-label=Period]'); choice.value = '60';"
        "choice.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    window.evaluate(choose)
    window.wait("location.search === '?period=60'")
    window.shows("documents:bulk", "table")
    assert window.complaints == []


def test_a_half_typed_status_is_not_requested(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/requests")
    window.shows("documents:bulk", "table")
    window.type("input[aria-label=Status]", "4")
    window.wait("document.querySelector('[aria-label=Status][aria-invalid=true]')")
    window.type("input[aria-label=Status]", "200")
    window.wait("location.search === '?status=200'")
    assert window.complaints == []


def test_a_failed_request_leads_to_its_error_and_back(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    answer = notes.caller.post(f"{notes.path}/query", {"filter": {"$where": 1}})
    refusal = problem(answer, 400, "unsupported_operator")
    window.open("/requests")
    window.click("tr.request button", "/query")
    window.shows("See the query language", ".request-panel .remedy")
    window.shows(refusal["request_id"], ".request-panel")
    window.click(".request-panel a", "Show in the error log")
    window.wait("location.pathname.endsWith('/errors')")
    window.wait(f"{ROWS} === 1")
    window.click("table button[aria-expanded]")
    window.click("a", "Show the last request")
    window.wait("location.pathname.endsWith('/requests')")
    window.shows("/query", "table")
    window.wait(f"{ROWS} === 1")
    assert window.complaints == []


def test_the_details_are_reached_and_left_by_keyboard(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/requests")
    window.wait("document.querySelector('tr.request button')")
    window.click("button", "Pause")
    window.shows("Paused", "[role=status]")
    window.evaluate("document.querySelector('tr.request button').focus()")
    window.press("Enter")
    window.wait("document.querySelector('.request-panel').contains(document.activeElement)")
    window.press("Escape")
    window.wait("document.querySelector('.request-panel') === null")
    window.wait("document.activeElement.matches('tr.request button')")
    window.click(".requests tbody tr", "documents:bulk")
    window.click(".request-panel button", "This caller")
    window.wait("location.search.startsWith('?actor=api_key')")
    window.shows("api_key:", ".request-filters button")
    assert window.complaints == []


def test_a_paused_list_stays_as_it_is(open_window: OpenWindow, notes: CollectionClient) -> None:
    window = open_window(notes.account)
    window.open("/requests")
    window.shows("documents:bulk", "table")
    window.click("button", "Pause")
    notes.caller.get(f"{notes.path}/documents/n2")
    from tenants.request_log import recorder

    recorder.flush()
    window.evaluate("document.querySelector('h1').click()")
    assert "{id}" not in " ".join(window.texts("table"))
    window.click("button", "Resume")
    window.shows("documents/{id}", "table")


def test_the_page_is_accessible_and_looks_right_at_every_width(
    open_window: OpenWindow, notes: CollectionClient, pictures: Path
) -> None:
    from tests.realtime.client import opened as socket_to

    for number in range(3):
        notes.caller.get(f"{notes.path}/documents/n{number}")
    notes.caller.get(f"{notes.path}/documents/absent")
    notes.caller.post(f"{notes.path}/documents", {"_id": "n1"})
    notes.caller.post("/graphql", {"query": "{ __typename }"})
    with socket_to(notes.caller.base, notes.caller.headers) as client:
        client.next()
        client.ask("query", "q", collection="notes", filter={})
    window = opened(open_window, notes.account)
    window.open("/requests")
    window.shows("duplicate_id", "table")
    window.shows("closed", "table .badge")
    take_pictures(window, pictures, "requests", desk=(1440, 900))
    take_pictures(window, pictures, "requests-wide", desk=WIDE)
    assert violations(window) == []
    window.click("tr.request button", "/documents")
    window.wait("document.querySelector('.request-panel')")
    take_pictures(window, pictures, "requests-details", desk=(1440, 900))
    assert violations(window) == []
    window.open("/requests?status=5xx")
    window.shows("No matching requests")
    take_pictures(window, pictures, "requests-none", desk=(1440, 900))
    assert violations(window) == []
    assert window.complaints == []
