"""A browser for tests: keeps cookies, sends the CSRF token, and has a separate address.

With a shared 127.0.0.1, limits by address would make tests depend on each other, so each browser
uses a different address of the loopback network.
"""

from __future__ import annotations

import itertools
import os
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

from tenants.credentials import sessions
from tests.make import PASSWORD
from tests.waiting import TIMEOUT_S

_numbers = itertools.count()


def _own_address() -> str:
    number = next(_numbers)
    process = os.getpid() % 200 + 20
    return f"127.{process}.{number // 250 % 250}.{number % 250 + 1}"


class _FromAddress(HTTPAdapter):
    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options, source_address=(self._address, 0))


def from_own_address() -> HTTPAdapter:
    """Return an adapter with which a `requests.Session` calls from an unused loopback address."""
    return _FromAddress(_own_address())


class Browser:
    """Calls the API as the console does."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.address = _own_address()
        self.csrf = ""
        self._session = requests.Session()
        self._session.mount("http://", _FromAddress(self.address))
        self._session.headers["User-Agent"] = "Test browser"

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        """Send one request. Underscores in header names become dashes."""
        sent = {"Origin": self.base, sessions.CSRF_HEADER: self.csrf}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self._session.request(
            method, self.base + "/api/v1/" + path, json=body, headers=sent, timeout=TIMEOUT_S
        )

    def get(self, path: str, **headers: str) -> requests.Response:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: object = None, **headers: str) -> requests.Response:
        return self.call("POST", path, {} if body is None else body, **headers)

    def patch(self, path: str, body: object, **headers: str) -> requests.Response:
        return self.call("PATCH", path, body, **headers)

    def delete(self, path: str, **headers: str) -> requests.Response:
        return self.call("DELETE", path, **headers)

    def log_in(self, email: str, password: str = PASSWORD) -> requests.Response:
        """Try to sign in; keep the CSRF token on success."""
        answer = self.post("auth/login", {"email": email, "password": password})
        if answer.ok:
            self.csrf = answer.json()["csrf_token"]
        return answer

    @property
    def cookie(self) -> str | None:
        """The session cookie's value."""
        return self._session.cookies.get(sessions.cookie_name())

    @cookie.setter
    def cookie(self, value: str) -> None:
        self._session.cookies.clear()
        host = urlsplit(self.base).hostname or ""
        self._session.cookies.set(sessions.cookie_name(), value, domain=host, path="/")

    @property
    def signed_in(self) -> bool:
        """Whether the server considers this browser signed in."""
        return self.get("auth/session").status_code == 200


def browser_of(base: str, email: str, password: str = PASSWORD) -> Browser:
    """Return a browser in which a user has signed in."""
    browser = Browser(base)
    answer = browser.log_in(email, password)
    assert answer.status_code == 200, answer.text
    return browser
