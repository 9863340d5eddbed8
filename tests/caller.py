"""A small HTTP client for tests: one base URL, one set of credentials, JSON requests and
responses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import requests

from tenants.credentials import sessions
from tenants.models import User
from tests.make import make_session
from tests.waiting import TIMEOUT_S


@dataclass
class Caller:
    """Calls the API with certain credentials."""

    base: str
    headers: dict[str, str] = field(default_factory=dict)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        raw: bytes | None = None,
        **headers: str,
    ) -> requests.Response:
        """Send one request. Underscores in header names become dashes."""
        return self._send(method, path, body, raw, headers)

    def _send(
        self, method: str, path: str, body: object, raw: bytes | None, headers: dict[str, str]
    ) -> requests.Response:
        sent = {**self.headers, **{name.replace("_", "-"): v for name, v in headers.items()}}
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        return requests.request(
            method,
            self.base + path,
            data=data,
            headers=sent,
            timeout=TIMEOUT_S,
            allow_redirects=False,
        )

    def get(self, path: str, **headers: str) -> requests.Response:
        return self._send("GET", path, None, None, headers)

    def post(self, path: str, body: object = None, **headers: str) -> requests.Response:
        return self._send("POST", path, {} if body is None else body, None, headers)

    def patch(self, path: str, body: object, **headers: str) -> requests.Response:
        return self._send("PATCH", path, body, None, headers)

    def put(self, path: str, body: object, **headers: str) -> requests.Response:
        return self._send("PUT", path, body, None, headers)

    def delete(self, path: str, **headers: str) -> requests.Response:
        return self._send("DELETE", path, None, None, headers)


def anonymous(base: str) -> Caller:
    """Call without credentials."""
    return Caller(base)


def with_key(base: str, key: str) -> Caller:
    """Call with a secret key or a personal token."""
    return Caller(base, {"Authorization": f"Bearer {key}"})


def signed_in(base: str, user: User) -> Caller:
    """Call as a browser in which the user has signed in."""
    token, csrf = make_session(user)
    return Caller(
        base,
        {"Cookie": f"{sessions.cookie_name()}={token}", sessions.CSRF_HEADER: csrf},
    )


def problem(response: requests.Response, status: int, code: str) -> dict[str, Any]:
    """Assert that the response is a problem document with this status and code; return it."""
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["code"] == code, body
    assert body["status"] == status
    return body
