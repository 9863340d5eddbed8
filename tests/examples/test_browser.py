"""The quick starts for browsers show in one window what another window writes."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import chromium
from tests.chromium import Browser, Page
from tests.own_valkey import free_port
from tests.waiting import wait_until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FRAMEWORKS = ("react", "vue", "svelte")
pytestmark = [pytest.mark.examples, pytest.mark.timeout(300)]

_ADD = """
(() => {{
  const field = document.querySelector("form input");
  field.focus();
  document.execCommand("insertText", false, {title!r});
  document.querySelector("form button").click();
}})()
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = chromium.found()
    if program is None:
        pytest.skip("this machine has no Chromium")
    with chromium.running(program) as browser:
        yield browser


def npm(example: Path, *arguments: str, **variables: str) -> None:
    subprocess.run(["npm", *arguments], cwd=example, env=os.environ | variables, check=True)


@contextmanager
def preview(example: Path, port: int) -> Iterator[str]:
    """Serve the page that was built."""
    url = f"http://127.0.0.1:{port}"
    argv = ["npx", "vite", "preview", "--host", "127.0.0.1", "--port", str(port), "--strictPort"]
    with subprocess.Popen(argv, cwd=example, start_new_session=True) as process:
        try:
            wait_until(lambda: responds(url), what=f"the page at {url}", timeout_s=60)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def responds(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def opened(browser: Browser, url: str) -> Page:
    page = browser.page()
    page.open(url)
    page.wait("document.querySelector('.state.live')")
    return page


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_changes_of_another_window_are_shown(
    framework: str, installation: dict[str, str], request: pytest.FixtureRequest
) -> None:
    example, port = EXAMPLES / framework, free_port()
    npm(example, "ci", "--no-audit", "--no-fund")
    npm(example, "run", "prepare-tenant", ORIGIN=f"http://127.0.0.1:{port}", **installation)
    npm(example, "run", "build")
    # Without a browser, the build was checked at least.
    browser: Browser = request.getfixturevalue("browser")
    title = f"Written by {framework}"
    row = f"[...document.querySelectorAll('li')].find((r) => r.textContent.includes({title!r}))"
    with preview(example, port) as url:
        writer, reader = opened(browser, url), opened(browser, url)
        writer.evaluate(_ADD.format(title=title))
        reader.wait(row)
        reader.evaluate(f"{row}.querySelector('input').click()")
        writer.wait(f"{row}.querySelector('input').checked")
        assert writer.evaluate("document.querySelector('[role=alert]')") is None
        if pictures := os.environ.get("RILLBASE_PICTURES"):
            writer.picture(Path(pictures) / f"quickstart-{framework}.png", width=900, height=600)
        for page in (writer, reader):
            page.close()
