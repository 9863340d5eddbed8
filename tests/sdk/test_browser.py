"""The JavaScript SDK, its React hooks and the examples, in a real browser."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import chromium, machine
from tests.caller import with_key
from tests.chromium import Browser, Page
from tests.realtime.live.conftest import BackgroundProcesses
from tests.sdk.driver import Reports, ask, shows
from tests.sdk.javascript import SDK, report, tool
from tests.sdk.proxy import Proxy, through_proxy
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = {"read": True, "create": True, "update": True, "delete": True}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium.running(machine.chromium()) as browser:
        yield browser


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- its name
        """Say nothing."""


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An origin of its own, with a page that holds the driver."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "index.html").write_text(
        '<!doctype html><div id="root"></div><script type="module" src="/page.js"></script>'
    )
    argv: list[str | Path] = [tool("esbuild"), "--bundle", "--format=esm", SDK / "test/page.tsx"]
    argv += [f"--outfile={folder / 'page.js'}", '--define:process.env.NODE_ENV="development"']
    bundled = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
    )
    assert bundled.returncode == 0, report(bundled)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@dataclass
class InPage:
    """The driver, in a page."""

    page: Page
    reports: Reports

    def send(self, do: str, name: str, **members: object) -> None:
        self.page.evaluate(f"take({json.dumps({'do': do, 'name': name, **members})})")


@pytest.fixture
def open_todos(server: str, background: BackgroundProcesses, origin: str) -> CollectionClient:
    """A collection in which everybody may do everything, from the page's origin."""
    # Models can be imported once Django is set up.
    from tests.documents.collection import make_collection

    todos = make_collection(server, rules=EVERYTHING)
    members = with_key(server, todos.account.admin_key)
    tenant = f"/api/v1/tenants/{todos.account.slug}"
    assert members.patch(tenant, {"cors_origins": [origin]}).status_code == 200
    # The server looks again after a second at whom it has looked up before.
    page = todos.anonymous()
    wait_until(
        lambda: page.post(f"{todos.path}/count", {}, Origin=origin).ok,
        what="the origin to be let in",
        timeout_s=120,
    )
    return todos


@pytest.fixture
def network(server: str) -> Iterator[Proxy]:
    with through_proxy(server) as proxy:
        yield proxy


@pytest.fixture
def client(browser: Browser, origin: str) -> InPage:
    page, reports = browser.page(), Reports()
    page.bind("report", reports.take)
    page.open(origin)
    page.wait("typeof take === 'function'")
    return InPage(page, reports)


def test_a_page_subscribes_writes_and_survives_a_bad_network(
    client: InPage, open_todos: CollectionClient, network: Proxy
) -> None:
    todos = open_todos
    key = todos.anonymous().headers["Rillbase-Key"]
    client.send("open", "open", options={"url": network.url, "key": key})
    client.send("watch", "q", collection=todos.name, sort=[["n", 1]])
    shows(client, "q", [])
    assert ask(client, "insert", "w", collection=todos.name, body={"_id": "b", "n": 2})["version"]
    network.cut()
    todos.insert({"_id": "a", "n": 1})
    shows(client, "q", [{"_id": "a", "n": 1}, {"_id": "b", "n": 2}])
    refusal = ask(client, "update", "u", collection=todos.name, id="none", body={"$set": {"n": 1}})
    assert refusal["error"]["code"] == "not_found"
    assert client.page.complaints == []


def test_a_secret_key_is_refused_in_a_page(client: InPage) -> None:
    opened = ask(client, "open", "open", options={"url": "http://127.0.0.1:1", "key": "rbk_dev_x"})
    assert opened["error"]["code"] == "secret_key_in_page"


def test_components_follow_a_query_and_a_document(
    client: InPage, open_todos: CollectionClient, server: str
) -> None:
    todos, page = open_todos, client.page
    todos.insert({"_id": "b", "text": "second"})
    options = {
        "url": server,
        "key": todos.anonymous().headers["Rillbase-Key"],
        "collection": todos.name,
    }
    page.evaluate(f"render({json.dumps(options)})")
    shown = "document.getElementById('root').innerText"
    page.wait(f"{shown} === 'live, a is nothing\\n\\nsecond'")
    todos.insert({"_id": "a", "text": "first"})
    page.wait(f"{shown} === 'live, a is first\\n\\nfirst\\nsecond'")
    todos.caller.patch(f"{todos.path}/documents/a", {"$set": {"text": "third"}})
    page.wait(f"{shown} === 'live, a is third\\n\\nsecond\\nthird'")
    page.evaluate("unmount()")
    assert page.complaints == []


@contextmanager
def example(name: str, server: str, key: str) -> Iterator[str]:
    """Serve an example and give its address."""
    argv = [sys.executable, "-u", "-m", "examples.browser", name, "--port", "0"]
    argv += ["--url", server, "--key", key]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()


def opened(browser: Browser, address: str) -> Page:
    page = browser.page()
    page.open(address)
    page.wait("document.querySelector('#state')?.textContent === 'live'")
    return page


def test_the_ideas_show_in_one_window_what_happens_in_another(
    browser: Browser, open_todos: CollectionClient, server: str
) -> None:
    with example("ideas", server, open_todos.account.admin_key) as address:
        here, there = opened(browser, address), opened(browser, address)
        assert here.evaluate("document.querySelector('.idea .title').textContent") == (
            "Four-day week"
        )
        there.evaluate("[...document.querySelectorAll('.vote')].at(-1).click()")
        here.wait("document.querySelector('#log').innerText.includes('Elevator')")
        there.evaluate("document.querySelector('#title').value = '<b>Tea</b>'")
        there.evaluate("document.querySelector('#new button').click()")
        here.wait("document.querySelector('#ideas').innerText.includes('<b>Tea</b>')")
        assert here.complaints + there.complaints == []


def test_a_chat_message_appears_in_its_room_and_is_announced_in_others(
    browser: Browser, open_todos: CollectionClient, server: str
) -> None:
    with example("chat", server, open_todos.account.admin_key) as address:
        here, there = opened(browser, address), opened(browser, f"{address}/#kitchen")
        here.wait("document.querySelector('#messages').innerText.includes('espresso')")
        there.evaluate("document.querySelector('#author').value = 'Grace'")
        there.evaluate("document.querySelector('#text').value = '<i>Me.</i>'")
        there.evaluate("document.querySelector('#new button').click()")
        here.wait("document.querySelector('.rooms [href=\"#kitchen\"].news')")
        here.evaluate("location.hash = 'kitchen'")
        here.wait("document.querySelector('#messages').innerText.includes('<i>Me.</i>')")
        assert here.complaints + there.complaints == []


def test_the_shop_shows_new_orders(
    browser: Browser, open_todos: CollectionClient, server: str
) -> None:
    with example("shop", server, open_todos.account.admin_key) as address:
        page = opened(browser, address)
        page.wait("Number(document.querySelector('#orders').textContent) >= 3")
        page.wait("document.querySelectorAll('#queue tr').length >= 2")
        assert page.complaints == []
