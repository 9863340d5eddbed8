"""Calls of the REST API with only the standard library."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any


class CallRejected(Exception):
    """Rillbase is not running, or rejects a call with an HTTP status. The text is for people."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class Api:
    """Calls with a secret key, or as a page of an origin with a publishable key."""

    def __init__(self, url: str, key: str, origin: str = "") -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json"}
        if origin:
            self._headers |= {"Rillbase-Key": key, "Origin": origin}
        else:
            self._headers["Authorization"] = f"Bearer {key}"

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        but: frozenset[int] | set[int] = frozenset(),
    ) -> Any:
        """Return the response; None for an expected rejection."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                problem = json.load(refused)
            if refused.code in but:
                return None
            text = f"{problem['title']} ({problem['code']}): {method} {path}"
            raise CallRejected(text, refused.code) from None
        except (urllib.error.URLError, OSError) as error:
            raise CallRejected(
                f"Rillbase is not running at {self._url} ({error}). Start it with `make run`."
            ) from None
