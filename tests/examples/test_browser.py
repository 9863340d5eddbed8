"""The quick starts for browsers show in one window what another window writes."""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Sequence

import pytest

from tests.chromium import Browser
from tests.examples.serving import (
    EXAMPLES,
    changes_are_shown,
    opened,
    row_of,
    run,
    serving,
    take_picture,
)
from tests.own_valkey import free_port

BUNDLED = ("react", "vue", "svelte", "nextjs")
pytestmark = [pytest.mark.examples, pytest.mark.timeout(300)]


def server_of(name: str, port: int) -> Sequence[str]:
    """Return the command that serves an example's page on this port."""
    local = ("--host", "127.0.0.1", "--port", str(port))
    match name:
        case "plain":
            return (sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1")
        case "nextjs":
            return ("npx", "next", "start", "--hostname", *local[1:])
        case _:
            return ("npx", "vite", "preview", *local, "--strictPort")


@pytest.mark.parametrize("name", ["plain", *BUNDLED])
def test_changes_of_another_window_are_shown(
    name: str, installation: dict[str, str], request: pytest.FixtureRequest
) -> None:
    example, port = EXAMPLES / name, free_port()
    url = f"http://127.0.0.1:{port}"
    run(example, "npm", "ci", "--no-audit", "--no-fund")
    run(example, "npm", "run", "prepare-tenant", ORIGIN=url, **installation)
    if name in BUNDLED:
        run(example, "npm", "run", "build")
    # Without a browser, the build was checked at least.
    browser: Browser = request.getfixturevalue("browser")
    with serving(example, server_of(name, port), url):
        writer, reader = opened(browser, url), opened(browser, url)
        changes_are_shown(writer, reader, f"Written by {name}")
        take_picture(writer, name)
        for page in (writer, reader):
            page.close()
        if name == "nextjs":
            is_rendered_by_the_server(browser, url, f"Written by {name}")


def is_rendered_by_the_server(browser: Browser, url: str, title: str) -> None:
    """The page has the tasks before any script runs, and none of its files has the secret key."""
    with urllib.request.urlopen(url, timeout=30) as response:
        assert title in response.read().decode()
    page = browser.page()
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open(url)
    assert page.evaluate(f"Boolean({row_of(title)})")
    page.close()
    settings = (EXAMPLES / "nextjs" / ".env.local").read_text()
    (secret,) = (line.partition("=")[2] for line in settings.splitlines() if "=rbk_" in line)
    sent = [*(EXAMPLES / "nextjs" / ".next" / "static").rglob("*.js")]
    assert sent
    assert [file for file in sent if secret in file.read_text()] == []
