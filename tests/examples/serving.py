"""Runs what a quick start serves, and opens it in a browser."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.chromium import Browser, Page
from tests.launcher_command import environment
from tests.waiting import wait_until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

_ADD = """
(() => {{
  const field = document.querySelector("form input");
  field.focus();
  document.execCommand("insertText", false, {title!r});
  document.querySelector("form button").click();
}})()
"""


def surroundings(**variables: str) -> dict[str, str]:
    """Return a user's environment: without the settings and paths of this test run."""
    present = environment(**variables)
    present.pop("PYTHONPATH", None)
    # Next.js would call a server of its vendor.
    return present | {"NEXT_TELEMETRY_DISABLED": "1"}


def run(example: Path, *argv: str, **variables: str) -> None:
    subprocess.run(argv, cwd=example, env=surroundings(**variables), check=True)


@contextmanager
def serving(example: Path, argv: Sequence[str], url: str) -> Iterator[None]:
    """Serve until the block ends."""
    with subprocess.Popen(argv, cwd=example, env=surroundings(), start_new_session=True) as process:
        try:
            wait_until(lambda: responds(url), what=f"the page at {url}", timeout_s=60)
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def responds(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def opened(browser: Browser, url: str) -> Page:
    """Open the page and wait until its list is live."""
    page = browser.page()
    page.open(url)
    page.wait("document.querySelector('.state.live')")
    return page


def changes_are_shown(writer: Page, reader: Page, title: str) -> None:
    """What one window adds and ticks, another window shows."""
    row = row_of(title)
    writer.evaluate(_ADD.format(title=title))
    reader.wait(row)
    reader.evaluate(f"{row}.querySelector('input').click()")
    writer.wait(f"{row}.querySelector('input').checked")
    assert writer.evaluate("document.querySelector('[role=alert]:not([hidden])')") is None
    assert writer.complaints == reader.complaints == []


def row_of(title: str) -> str:
    return f"[...document.querySelectorAll('li')].find((r) => r.textContent.includes({title!r}))"


def take_picture(page: Page, name: str) -> None:
    if folder := os.environ.get("RILLBASE_PICTURES"):
        page.call("Page.bringToFront")
        page.picture(Path(folder) / f"quickstart-{name}.png", width=900, height=600)
