"""The API reference at /api/docs, in the machine's Chromium."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rillbase_server.pages import openapi_document
from tests.console.looking import ROOT, opened, take_pictures, violations

if TYPE_CHECKING:
    from tests.chromium import Browser
    from tests.console.conftest import OpenWindow
    from tests.console.window import Window
    from tests.documents.collection import CollectionClient
    from tests.make import TenantAccount

pytestmark = pytest.mark.browser

METHODS = ("get", "post", "put", "patch", "delete")
OPERATIONS = {
    operation["operationId"]
    for item in json.loads(openapi_document())["paths"].values()
    for method, operation in item.items()
    if method in METHODS
}
INSERT, READ = "documents_insert", "documents_get"
SHOWN = """[...document.querySelectorAll(".operation")].filter((e) => e.checkVisibility())
  .map(({id}) => id)"""
USED = re.compile(r"var\((--[\w-]+)\)")
TOKEN = re.compile(r"(--[\w-]+):\s*([^;]+);")
TOKENS = ROOT / "console/src/styles/tokens.css"
STYLES = ROOT / "platform/rillbase_server/static/rillbase/reference/reference.css"


def reference(open_window: OpenWindow, account: TenantAccount, anchor: str = "") -> Window:
    window = opened(open_window, account)
    window.page.open(f"{window.base}/api/docs{anchor}")
    window.wait("document.querySelector('.operation')")
    return window


def code(window: Window, operation: str = INSERT) -> str:
    selector = json.dumps(f"#{operation} pre code")
    text: str = window.evaluate(f"document.querySelector({selector}).textContent")
    return text


def test_every_operation_of_the_openapi_document_is_shown(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = reference(open_window, notes.account)
    assert set(window.evaluate(SHOWN)) == OPERATIONS


def test_typing_filters_a_slash_focuses_and_escape_clears(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = reference(open_window, notes.account)
    window.page.call("Input.dispatchKeyEvent", type="keyDown", key="/", text="/")
    window.wait("document.activeElement.id === 'search'")
    window.page.call("Input.insertText", text="insert document")
    texts = window.evaluate(SHOWN)
    assert INSERT in texts
    assert len(texts) < len(OPERATIONS) / 4
    window.type("#search", "nothing like this")
    window.shows("No operation matches.")
    window.press("Escape")
    window.wait(f"({SHOWN}).length === {len(OPERATIONS)}")


def test_an_address_opens_its_operation_with_schemas_and_errors(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = reference(open_window, notes.account, f"#{INSERT}")
    window.shows("Request body", f"#{INSERT}")
    window.shows("Idempotency-Key", f"#{INSERT}")
    window.click(f"#{INSERT} details summary", "Errors")
    window.shows("request_id", f"#{INSERT}")
    assert window.evaluate(
        f"document.querySelector('#{INSERT} a[href=\"/docs/errors/\"]') !== null"
    )


def test_snippets_have_the_tenant_and_the_key_in_each_language(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    account = notes.account
    window = reference(open_window, account, "#tenants_read")
    assert f"/api/v1/tenants/{account.slug}" in code(window, "tenants_read")
    assert "Bearer rbk_…" in code(window, "tenants_read")
    window.wait(f"document.querySelector('#new-key[href=\"/t/{account.slug}/keys\"]')")
    window.type("#key", "rbk_mine")
    for language, start in (("Python", "import requests"), ("JavaScript", "const response")):
        window.click("#tenants_read .languages button", language)
        assert code(window, "tenants_read").startswith(start)
        assert "Bearer rbk_mine" in code(window, "tenants_read")


def test_a_read_can_be_tried_as_the_signed_in_member_and_a_write_cannot(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = reference(open_window, notes.account, f"#{READ}")
    window.type(f"#{READ}-collection", "notes")
    window.type(f"#{READ}-id", "n1")
    window.click(f"#{READ} .try")
    window.shows("Note 1", f"#{READ}")
    window.page.open(f"{window.base}/api/docs#{INSERT}")
    window.wait(f"document.querySelector('#{INSERT} pre')")
    assert window.evaluate(f"document.querySelector('#{INSERT} .try')") is None


def test_a_stranger_sees_the_reference_and_where_to_sign_in(browser: Browser, server: str) -> None:
    page = browser.page()
    page.call("Network.clearBrowserCookies")
    page.open(f"{server}/api/docs#{INSERT}")
    page.wait(f"document.querySelector('#{INSERT} pre')")
    assert page.evaluate("document.querySelector('#new-key').getAttribute('href')") == "/sign-in"
    assert page.complaints == []


def test_nothing_keeps_people_out_in_either_theme_or_at_any_width(
    open_window: OpenWindow, notes: CollectionClient, pictures: Path
) -> None:
    window = reference(open_window, notes.account, f"#{INSERT}")
    window.click(f"#{INSERT} details summary", "201")
    assert violations(window) == []
    take_pictures(window, pictures, "api-reference", desk=(1440, 900))
    assert violations(window) == []
    take_pictures(window, pictures, "api-reference-wide", desk=(1920, 1080))
    assert window.complaints == []


def test_its_colours_and_font_are_those_of_the_console(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    console, own = (dict(TOKEN.findall(file.read_text())) for file in (TOKENS, STYLES))
    used = sorted(set(USED.findall(STYLES.read_text())))
    assert len(used) > 20
    assert own == {}
    assert set(used) <= set(console)
    values = f"""{json.dumps(used)}.map((name) =>
      getComputedStyle(document.documentElement).getPropertyValue(name).trim())"""
    window = opened(open_window, notes.account)
    window.open("/overview")
    window.wait("document.querySelector('.side')")
    expected = window.evaluate(values)
    assert all(expected)
    window = reference(open_window, notes.account)
    assert window.evaluate(values) == expected
    window.wait("[...document.fonts].some((f) => f.family === 'Inter' && f.status === 'loaded')")
    assert window.complaints == []
