"""What the page needs in the tenant. Done again, it finds what is there."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

COLLECTION = "ideas"
KEY_NAME = "Browser example"
FORBIDDEN, TAKEN = 403, 409
LET_IN_WITHIN_S = 10.0

IDEAS = (
    ("Dark mode for the kitchen", 3),
    ("Elevator that knows where I want to go", 2),
    ("Four-day week", 8),
    ("A plant for every desk", 5),
)

#: Everybody may do everything that the schema allows: this is a playground.
DECLARATION = {
    "name": COLLECTION,
    "schema": {
        "type": "object",
        "required": ["title", "votes"],
        "properties": {
            "title": {"type": "string", "minLength": 1, "maxLength": 80},
            "votes": {"type": "number"},
        },
    },
    "access_rules": {"read": True, "create": True, "update": True, "delete": True},
    "indexes": [{"name": "by-votes", "fields": [["votes", -1]]}],
}


class Refused(Exception):
    """Rillbase is not there, or does not allow it. The text is for people."""


def prepare(url: str, key: str, origin: str) -> Mapping[str, str]:
    """Return what the page has to know."""
    api = _Api(url, key)
    tenant = f"/api/v1/tenants/{api.call('GET', '/v1/whoami')['tenant']}"
    if api.call("POST", f"{tenant}/collections", DECLARATION, but={TAKEN}) is not None:
        documents = [{"insert": {"title": title, "votes": votes}} for title, votes in IDEAS]
        api.call("POST", f"/v1/collections/{COLLECTION}/documents:bulk", {"operations": documents})
    _let_in(api, tenant, origin)
    public = _publishable_key(api, tenant)
    _wait_until_let_in(_Api(url, public, origin))
    return {"url": url, "key": public, "collection": COLLECTION}


def _let_in(api: _Api, tenant: str, origin: str) -> None:
    """Allow the page's origin to call."""
    origins = api.call("GET", tenant)["cors_origins"]
    if origin not in origins:
        api.call("PATCH", tenant, {"cors_origins": [*origins, origin]})


def _wait_until_let_in(page: _Api) -> None:
    """Servers look again after a second at whom they have looked up before."""
    deadline = time.monotonic() + LET_IN_WITHIN_S
    while page.call("POST", f"/v1/collections/{COLLECTION}/count", {}, but={FORBIDDEN}) is None:
        if time.monotonic() > deadline:
            raise Refused("The page's origin is not let in.")
        time.sleep(0.1)


def _publishable_key(api: _Api, tenant: str) -> str:
    """Return a key that may be in everybody's hands."""
    for known in api.call("GET", f"{tenant}/api-keys?limit=100")["items"]:
        if known["name"] == KEY_NAME and known["state"] == "active" and known["key"]:
            return str(known["key"])
    wanted = {
        "kind": "publishable",
        "name": KEY_NAME,
        "scopes": ["documents:read", "documents:write", "realtime"],
        "collections": [COLLECTION],
    }
    return str(api.call("POST", f"{tenant}/api-keys", wanted)["key"])


class _Api:
    """Calls with a secret key, or as a page of an origin with a publishable one."""

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
        """Return the answer; None for a refusal that is expected."""
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
            raise Refused(f"{problem['title']} ({problem['code']}): {method} {path}") from None
        except urllib.error.URLError as error:
            raise Refused(f"No Rillbase at {self._url} ({error.reason}). `make run`?") from None
