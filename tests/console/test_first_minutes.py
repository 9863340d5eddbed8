"""From the printed link to a row that changes live."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.chromium import Browser
from tests.console.window import Window
from tests.realtime.live.conftest import BackgroundProcesses
from tests.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
BOARD = ".board li"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- its name
        """Say nothing."""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the origin that serves it, as a local web server does."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path)) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield tmp_path, f"http://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()
        thread.join()


def test_the_first_five_minutes(
    browser: Browser, server: str, background: BackgroundProcesses, app: tuple[Path, str]
) -> None:
    from tenants.actions import local_links
    from tests.make import make_tenant

    account = make_tenant()
    token = local_links.do_issue(account.owner).partition("#")[2]
    window = Window(browser.page(), server, account.slug)
    window.page.open(f"{server}/sign-in#{token}")
    window.click("button", "Set it up")
    window.wait(f"document.querySelectorAll({json.dumps(BOARD)}).length === 4")
    assert "token" not in window.evaluate("location.href")
    assert "Four-day week" in window.texts(BOARD)[0]

    folder, origin = app
    code = window.texts(".steps pre")[0]
    assert len(code.strip().splitlines()) <= 10
    (folder / "app.html").write_text(code)
    let_in(window, origin)
    other = browser.page()
    other.open(f"{origin}/app.html")
    other.wait("document.querySelectorAll('#ideas li').length === 4")

    vote = "[aria-label='Add a vote for Elevator that knows where I want to go']"
    for _ in range(8):
        window.click(vote)
    window.wait(f"document.querySelector({json.dumps(BOARD)}).innerText.includes('Elevator')")
    other.wait("document.querySelector('#ideas li').textContent.startsWith('10 Elevator')")
    assert window.evaluate("JSON.stringify(localStorage)").count("rbp_") == 0
    assert window.complaints == []


@pytest.mark.parametrize(
    ("language", "file"), [("Node.js", "app.mjs"), ("Python", "app.py")], ids=["node", "python"]
)
def test_the_snippets_run_as_they_are_shown(
    browser: Browser,
    server: str,
    background: BackgroundProcesses,
    tmp_path: Path,
    language: str,
    file: str,
) -> None:
    from tenants.actions import local_links
    from tests.make import make_tenant

    account = make_tenant()
    token = local_links.do_issue(account.owner).partition("#")[2]
    window = Window(browser.page(), server, account.slug)
    window.page.open(f"{server}/sign-in#{token}")
    window.click("button", "Set it up")
    window.click(".steps .segments label, .steps .segments button", language)
    window.shows(file, ".steps h3")
    code, run = window.texts(".steps pre")[:2]
    (tmp_path / file).write_text(code)
    for part in ("sdk", ".venv"):
        (tmp_path / part).symlink_to(ROOT / part)
    assert "8 Four-day week" in first_output(run, tmp_path)


def first_output(command: str, folder: Path) -> str:
    """Run a command, and return what it prints up to the last of the sample rows."""
    printed = ""
    with subprocess.Popen(
        ["bash", "-c", f"exec env {command}"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            printed += line
            if "Elevator" in line:
                break
        process.terminate()
    return printed


def let_in(window: Window, origin: str) -> None:
    """Add an origin in the settings, and wait until servers know it."""
    other = Window(window.page, window.base, window.tenant)
    (key,) = re.findall(r'"(rbp_[^"]+)"', window.texts(".steps pre")[0])
    other.open("/settings")
    other.wait("document.querySelector('textarea')")
    held = other.evaluate("document.querySelector('textarea').value")
    assert "http://127.0.0.1:8100" in held
    other.type("textarea", f"{held}\n{origin}")
    other.click("button", "Save")
    other.shows("Origins saved", ".toast")
    headers = {"Rillbase-Key": key, "Origin": origin}
    from tests.caller import Caller

    caller = Caller(window.base, headers)
    wait_until(
        lambda: caller.post("/v1/collections/ideas/count", {}).ok,
        what="the origin to be let in",
        timeout_s=30,
    )
    window.open("/start")
    window.wait(f"document.querySelectorAll({json.dumps(BOARD)}).length === 4")
