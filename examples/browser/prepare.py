"""What a page needs in the tenant. A repeated run uses what exists."""

from __future__ import annotations

import time
from collections.abc import Mapping

from examples.browser.api import Api, CallRejected
from examples.browser.apps import App

FORBIDDEN, TAKEN = 403, 409
ORIGIN_TIMEOUT_S = 30.0


def prepare(app: App, url: str, key: str, origin: str) -> Mapping[str, str]:
    """Return the page's settings."""
    api = Api(url, key)
    tenant = f"/api/v1/tenants/{api.call('GET', '/v1/whoami')['tenant']}"
    _make_collection(api, tenant, app)
    public = _publishable_key(api, tenant, app)
    page, deadline = Api(url, public, origin), time.monotonic() + ORIGIN_TIMEOUT_S
    while not _is_allowed(page, app):
        if time.monotonic() > deadline:
            raise CallRejected(f"Rillbase did not accept the origin {origin} in time. Retry.")
        # Another example may have written the list at the same time.
        _allow_origin(api, tenant, origin)
        time.sleep(0.2)
    return {"url": url, "key": public}


def _make_collection(api: Api, tenant: str, app: App) -> None:
    """Create the collection with its samples, or use that of an earlier run."""
    if api.call("POST", f"{tenant}/collections", app.declaration, but={TAKEN}) is None:
        present = api.call("GET", f"{tenant}/collections/{app.collection}")
        if any(present[part] != app.declaration[part] for part in ("schema", "access_rules")):
            raise CallRejected(
                f"The tenant already has a collection {app.collection!r} with another schema or "
                "other access rules. Delete the collection, or use a key of another tenant."
            )
        return
    if samples := [{"insert": document} for document in app.samples()]:
        path = f"/v1/collections/{app.collection}/documents:bulk"
        api.call("POST", path, {"operations": samples})


def _allow_origin(api: Api, tenant: str, origin: str) -> None:
    """Allow the page's origin to call."""
    origins = api.call("GET", tenant)["cors_origins"]
    if origin not in origins:
        api.call("PATCH", tenant, {"cors_origins": [*origins, origin]})


def _is_allowed(page: Api, app: App) -> bool:
    """Whether the server already allows the origin: it caches its answer for a second."""
    count = f"/v1/collections/{app.collection}/count"
    return page.call("POST", count, {}, but={FORBIDDEN}) is not None


def _publishable_key(api: Api, tenant: str, app: App) -> str:
    """Return a key that may be public."""
    name = f"Browser example: {app.name}"
    for known in api.call("GET", f"{tenant}/api-keys?limit=100")["items"]:
        if known["name"] == name and known["state"] == "active" and known["key"]:
            return str(known["key"])
    body = {
        "kind": "publishable",
        "name": name,
        "scopes": ["documents:read", "documents:write"],
        "collections": [app.collection],
    }
    return str(api.call("POST", f"{tenant}/api-keys", body)["key"])
