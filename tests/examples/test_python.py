"""The quick starts with a Python server."""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.caller import with_key
from tests.chromium import Browser, Page
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
from tests.waiting import wait_until

FASTAPI, DJANGO = EXAMPLES / "fastapi", EXAMPLES / "django"
PREPARE = ("node", "../shared/prepare.js")
pytestmark = [pytest.mark.examples, pytest.mark.timeout(300)]

_SIGN_IN = """
(() => {{
  document.querySelector("[name=username]").value = {name!r};
  document.querySelector("[name=password]").value = {password!r};
  document.querySelector("form button").click();
}})()
"""


def install(example: Path) -> Path:
    """Install what the example has locked, and return its Python."""
    run(example, sys.executable, "-m", "venv", ".venv")
    python = example / ".venv" / "bin" / "python"
    pip = (str(python), "-m", "pip", "install", "--quiet")
    run(example, *pip, "-r", "requirements.txt")
    run(example, *pip, "../../sdk/python")
    return python


@pytest.fixture(scope="module")
def fastapi(installation: dict[str, str]) -> Iterator[str]:
    """The address of the running example."""
    python, port = install(FASTAPI), free_port()
    url = f"http://127.0.0.1:{port}"
    collection = ("--collection", "../shared/published-tasks.json")
    run(FASTAPI, *PREPARE, *collection, "--prefix=", "--server-key", **installation)
    options = ("--env-file", ".env.local", "--timeout-graceful-shutdown", "1")
    argv = (str(python), "-m", "uvicorn", "main:app", *options, "--port", str(port))
    with serving(FASTAPI, argv, url):
        yield url


def test_fastapi_ends_the_subscription_of_a_browser_that_leaves(
    fastapi: str, installation: dict[str, str]
) -> None:
    admin = with_key(installation["RILLBASE_URL"], installation["RILLBASE_KEY"])
    tenant = admin.get("/v1/whoami").json()["tenant"]

    def subscriptions() -> set[str]:
        answer = admin.get(f"/api/v1/tenants/{tenant}/subscriptions?limit=100").json()
        return {
            item["id"] for item in answer["items"] if item.get("collection") == "published-tasks"
        }

    before = subscriptions()
    with requests.get(f"{fastapi}/tasks/live", stream=True, timeout=60) as stream:
        lines = stream.iter_lines()  # Held until the block ends: without it, the stream is closed.
        while b'"state":"live"' not in next(lines):
            pass
        wait_until(lambda: bool(subscriptions() - before), what="the subscription")
        new = subscriptions() - before
    wait_until(lambda: not new & subscriptions(), what="the end of the subscription")


def test_fastapi_pushes_the_changes_of_another_window(fastapi: str, browser: Browser) -> None:
    writer, reader = opened(browser, fastapi), opened(browser, fastapi)
    changes_are_shown(writer, reader, "Written by FastAPI")
    take_picture(writer, "fastapi")
    for page in (writer, reader):
        page.close()


def test_fastapi_rejects_what_is_not_a_task(fastapi: str) -> None:
    def call(method: str, path: str, body: dict[str, str | bool]) -> int:
        return requests.request(method, fastapi + path, json=body, timeout=30).status_code

    assert call("POST", "/tasks", {"title": "  "}) == 422
    assert call("POST", "/tasks", {"title": "x" * 201}) == 422
    assert call("PATCH", "/tasks/not-an-id", {"done": True}) == 422
    assert call("PATCH", f"/tasks/{secrets.token_hex(12)}", {"done": True}) == 404
    assert call("POST", "/tasks", {"title": "Water the plants"}) == 201


@pytest.fixture(scope="module")
def django(installation: dict[str, str]) -> Iterator[str]:
    """The address of the running example, which has the users Ada and Bob."""
    python, port = install(DJANGO), free_port()
    url = f"http://127.0.0.1:{port}"
    collection = ("--collection", "../shared/personal-tasks.json")
    issuer = ("--issuer", "https://tasks.example")
    run(
        DJANGO,
        *(*PREPARE, *collection, *issuer, "--prefix=", "--server-key"),
        ORIGIN=url,
        **installation,
    )
    manage = (str(python), "manage.py")
    (DJANGO / "db.sqlite3").unlink(missing_ok=True)
    run(DJANGO, *manage, "migrate", "--verbosity", "0")
    for name in ("ada", "bob"):
        create = ("createsuperuser", "--noinput", "--username", name, "--email", "")
        run(DJANGO, *manage, *create, DJANGO_SUPERUSER_PASSWORD=PASSWORDS[name])
    with serving(DJANGO, (*manage, "runserver", "--noreload", str(port)), url):
        yield url


PASSWORDS = {name: secrets.token_urlsafe() for name in ("ada", "bob")}


def sign_in(page: Page, url: str, name: str) -> None:
    page.open(url)
    page.evaluate(_SIGN_IN.format(name=name, password=PASSWORDS[name]))
    page.wait("document.querySelector('.state.live')")


def sign_out(page: Page) -> None:
    page.evaluate("document.querySelector('form[method=post] button').click()")
    page.wait("document.querySelector('[name=username]')")


def test_django_shows_users_only_their_own_tasks(django: str, browser: Browser) -> None:
    writer = browser.page()
    sign_in(writer, django, "ada")
    reader = opened(browser, django)  # The windows share a session.
    changes_are_shown(writer, reader, "Written by Ada")
    take_picture(writer, "django")
    assert "Written by Ada" in rendered(writer, django)
    sign_out(writer)
    sign_in(writer, django, "bob")
    changes_are_shown(writer, opened(browser, django), "Written by Bob")
    assert not writer.evaluate(f"Boolean({row_of('Written by Ada')})")
    assert "Written by Ada" not in rendered(writer, django)


def rendered(page: Page, url: str) -> str:
    """Return the page's source as the server sends it."""
    return str(page.evaluate(f"fetch({url!r}).then((response) => response.text())"))


def test_django_issues_tokens_only_to_signed_in_users(django: str) -> None:
    answer = requests.get(f"{django}/token", allow_redirects=False, timeout=30)
    assert answer.status_code == 302
    assert re.match("/accounts/login/", answer.headers["Location"])
