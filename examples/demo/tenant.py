"""What the demo needs in its tenant: definitions, a receiver of webhooks, and live subscribers."""

from __future__ import annotations

import http.server
import json
import secrets
import threading
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from examples.browser.api import Api

Json = dict[str, Any]

COLLECTION, TOPIC, AGGREGATE, WEBHOOK = "deliveries", "vans", "sales", "Demo receiver"
KEY, DATA = "Demo clients", ("documents", "topics", "aggregates")
EXISTS, REJECTED, INVALID_KEY = {409}, {400}, {401}
TIMEOUT_S = 10.0
SALES: Json = {
    "dimensions": ["goods", "district"],
    "time": {"field": "at", "bucket": "5m"},
    "measures": {
        "deliveries": {"op": "count"},
        "revenue": {"op": "sum", "field": "price"},
        "largest": {"op": "max", "field": "price"},
    },
    "rollups": [["goods"], ["district"]],
    "retention": "7d",
}
SUBSCRIPTIONS: tuple[Json, ...] = (
    {"collection": COLLECTION, "filter": {"state": "on the way"}, "sort": [["number", 1]]},
    {"collection": COLLECTION, "filter": {}, "sort": [["price", -1]], "limit": 3},
    {"aggregate": AGGREGATE, "group_by": ["goods"], "from": "-24h"},
    {"topic": TOPIC, "geo": {"center": [16.3731, 48.2085], "radius_m": 800}, "to": "+1d"},
)


#: Charts on the overview.
PINNED: tuple[Json, ...] = (
    {
        "name": "Revenue of the last day, by goods",
        "kind": "aggregate",
        "source": AGGREGATE,
        "query": {"group_by": ["at", "goods"], "from": "-24h", "bucket": "1h", "limit": 1_000},
        "chart": {"type": "line", "x": "at", "y": "revenue", "series": "goods"},
    },
    {
        "name": "Deliveries by state",
        "kind": "collection",
        "source": COLLECTION,
        "query": {
            "filter": {},
            "group": {"by": ["state"], "measures": {"deliveries": {"op": "count"}}},
            "sort": [["state", 1]],
            "limit": 20,
        },
        "chart": {"type": "bar", "x": "state", "y": "deliveries"},
    },
)


class Receiver(http.server.BaseHTTPRequestHandler):
    """Receives webhooks at an address that nobody else can guess, and confirms the handshake by
    returning its challenge.
    """

    ADDRESS = f"/{secrets.token_urlsafe()}"

    def do_POST(self) -> None:
        if self.path != self.ADDRESS:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body["data"]).encode())

    def do_GET(self) -> None:
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base's name
        """Log nothing."""


def define(api: Api, tenant: str) -> bool:
    """Create the collection, the topic and the aggregate. Return whether the aggregate is new."""
    base = f"/api/v1/tenants/{tenant}"
    create_missing(api, f"{base}/collections", {"name": COLLECTION})
    topic = {"name": TOPIC, "kind": "geo", "retention_s": 3600}
    create_missing(api, f"{base}/topics", topic)
    return create_missing(api, f"{base}/aggregates", {"name": AGGREGATE, **SALES})


def data_key(url: str, key: str, tenant: str, file: Path) -> str:
    """Return a key for data alone: only the definitions need the right to administer the tenant.

    The file keeps it, as the server shows it once.
    """
    if file.exists() and Api(url, file.read_text()).call("GET", "/v1/whoami", but=INVALID_KEY):
        return file.read_text()
    scopes = [f"{kind}:{right}" for kind in DATA for right in ("read", "write")]
    created = Api(url, key).call(
        "POST", f"/api/v1/tenants/{tenant}/api-keys", {"name": KEY, "scopes": scopes}
    )
    file.touch(mode=0o600)
    file.write_text(created["secret"])
    return file.read_text()


def create_missing(api: Api, path: str, definition: Json) -> bool:
    """Create something unless it exists, without a rejected call, which would be an error in the
    tenant's log. Return whether it is new.
    """
    names = {item["name"] for item in api.call("GET", f"{path}?limit=200")["items"]}
    if definition["name"] in names:
        return False
    return api.call("POST", path, definition, but=EXISTS) is not None


def pin_charts(api: Api, tenant: str) -> None:
    """Save the demo's queries and pin their charts, unless the tenant has saved queries."""
    path = f"/api/v1/tenants/{tenant}/saved-queries"
    if api.call("GET", path)["items"]:
        return
    for place, saved in enumerate(PINNED):
        api.call("POST", path, saved | {"pin": place})


@cache
def receiver_port() -> int:
    """Return the port of this process's receiver, which starts with the first call."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def receive_webhooks(api: Api, tenant: str) -> None:
    """Send the tenant's events to a receiver, unless loopback targets are off."""
    base = f"/api/v1/tenants/{tenant}/webhooks"
    body: Json = {"url": f"http://127.0.0.1:{receiver_port()}{Receiver.ADDRESS}"}
    existing = [hook for hook in api.call("GET", base)["items"] if hook["name"] == WEBHOOK]
    if existing:
        api.call("PATCH", f"{base}/{existing[0]['id']}", body, but=REJECTED)
    else:
        body |= {"name": WEBHOOK, "events": ["*"]}
        api.call("POST", base, body, but=REJECTED)


class Client:
    """A connection that subscribes to a query, publishes, and reads what is pushed."""

    def __init__(self, url: str, key: str, query: Json) -> None:
        self.error = ""
        self._connection = connect(
            url.replace("http", "ws", 1) + "/v1/realtime",
            additional_headers={"Authorization": f"Bearer {key}"},
            subprotocols=["rillbase.v1"],  # type: ignore[list-item]
            open_timeout=TIMEOUT_S,
        )
        self._send(type="subscribe", id="query", **query)
        threading.Thread(target=self._read, daemon=True).start()

    def publish(self, publication: Json) -> None:
        self._send(type="publish", id="publish", topic=TOPIC, **publication)

    def close(self) -> None:
        self._connection.close()

    def _send(self, **message: object) -> None:
        self._connection.send(json.dumps(message))

    def _read(self) -> None:
        try:
            for text in self._connection:
                frame = json.loads(text)
                if frame["type"] == "error":
                    self.error = frame["error"]["title"]
            self.error = "the connection was closed"
        except WebSocketException as error:
            self.error = f"the connection was closed: {error}"
