"""The documentation as a running server serves it at /docs/."""

from __future__ import annotations

import http.client
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from pytest_django import Settings

from tests import chromium, machine
from tests.make import make_key, make_tenant
from tests.sdk.assistant import assistant
from tests.waiting import wait_until

VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
    (event) => violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""
#: Where the theme keeps its search.
SEARCH = "[...document.querySelectorAll('*')].find((e) => e.shadowRoot)?.shadowRoot"
PAGE = "/docs/guide/webhooks/"
#: Whether the page is among the results half a second later.
IS_FOUND = f"""
(async () => {{
  await new Promise((resolve) => setTimeout(resolve, 500));
  return [...{SEARCH}.querySelectorAll("ol a")].some((a) => a.pathname === "{PAGE}");
}})()
"""


@pytest.fixture
def docs(server: str, site: Path, settings: Settings) -> str:
    """The address of the served site."""
    settings.SITE_DIR = site
    return f"{server}/docs/"


@pytest.mark.parametrize(
    ("address", "media_type", "source"),
    [
        ("", "text/html; charset=utf-8", "index.html"),
        ("guide/why/", "text/html; charset=utf-8", "guide/why/index.html"),
        ("guide/why.md", "text/markdown; charset=utf-8", "guide/why.md"),
        ("llms.txt", "text/plain; charset=utf-8", "llms.txt"),
        ("search.json", "application/json", "search.json"),
        ("guide/why.svg", "image/svg+xml", "guide/why.svg"),
    ],
)
def test_a_file_of_the_site_is_served_and_revalidated(
    docs: str, site: Path, address: str, media_type: str, source: str
) -> None:
    response = requests.get(docs + address, timeout=30)
    assert response.status_code == 200
    assert response.headers["Content-Type"] == media_type
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.content == (site / source).read_bytes()
    again = requests.get(
        docs + address, headers={"If-None-Match": response.headers["ETag"]}, timeout=30
    )
    assert (again.status_code, again.content) == (304, b"")
    policy = "Content-Security-Policy"
    assert again.headers[policy] == response.headers[policy]


def test_an_address_without_its_last_slash_leads_to_the_page(docs: str) -> None:
    for address in (docs.removesuffix("/"), f"{docs}guide/why"):
        response = requests.get(address, allow_redirects=False, timeout=30)
        assert response.status_code in (301, 302)
        assert response.headers["Location"] == urlsplit(address).path + "/"


def test_a_missing_page_shows_the_not_found_page_of_the_site(docs: str) -> None:
    response = requests.get(f"{docs}guide/nowhere/", timeout=30)
    assert response.status_code == 404
    assert response.headers["Content-Type"].startswith("text/html")
    assert 'href="/docs/start/"' in response.text


@pytest.mark.parametrize(
    "path",
    [
        "../zensical.toml",
        "..%2fzensical.toml",
        "%2e%2e/zensical.toml",
        "guide/../../zensical.toml",
        "//etc/passwd",
        "%2fetc%2fpasswd",
        "a%00b",
        "x" * 300,
    ],
)
def test_no_path_leads_out_of_the_site(docs: str, path: str) -> None:
    at = urlsplit(docs)
    connection = http.client.HTTPConnection(at.netloc, timeout=30)
    connection.request("GET", f"/docs/{path}")
    response = connection.getresponse()
    assert response.status in (400, 404)
    assert b"site_name" not in (body := response.read())
    assert b"root:" not in body
    connection.close()


def test_without_a_built_site_there_is_no_documentation(
    server: str, settings: Settings, tmp_path: Path
) -> None:
    settings.SITE_DIR = tmp_path / "absent"
    response = requests.get(f"{server}/docs/", timeout=30)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_an_assistant_searches_the_documentation_of_its_server(docs: str, server: str) -> None:
    key = make_key(make_tenant().tenant)
    with assistant(server, key) as reader:
        text = reader.call("docs", search="webhook signature verification")
        assert text.startswith("<!-- guide/webhooks.md -->")


def test_a_reader_searches_the_site_in_a_browser_under_a_strict_policy(docs: str) -> None:
    policy = requests.get(docs, timeout=30).headers["Content-Security-Policy"]
    assert "script-src 'self' 'sha256-" in policy
    with chromium.running(machine.chromium()) as browser:
        page = browser.page()
        page.call("Page.addScriptToEvaluateOnNewDocument", source=VIOLATIONS)
        page.open(docs)
        page.evaluate("document.querySelector('.md-search__button').click()")
        page.wait(f"{SEARCH}?.querySelector('dialog[open] input') === {SEARCH}?.activeElement")

        def search() -> bool:
            page.evaluate(f"{SEARCH}?.querySelector('input')?.select()")
            page.call("Input.insertText", text="webhook")
            return bool(page.evaluate(IS_FOUND))

        # Text that is typed before the theme is ready is lost, or not searched for.
        wait_until(search, what="the page among the results")
        assert page.evaluate("violations") == []
        assert page.complaints == []


@pytest.mark.parametrize(
    "address",
    ["docs/", "docs/guide/why/", "docs/guide/nowhere/", "api/docs", "sign-in", "staff/login/"],
)
def test_a_page_works_when_it_is_loaded_again(docs: str, server: str, address: str) -> None:
    with chromium.running(machine.chromium()) as browser:
        page = browser.page()
        page.call("Page.addScriptToEvaluateOnNewDocument", source=VIOLATIONS)
        page.open(f"{server}/{address}")
        for _ in range(2):
            page.reload()
            assert page.evaluate("violations") == []
            assert page.complaints == []
