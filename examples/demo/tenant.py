"""What the demo needs in its tenant: definitions, a receiver of webhooks, and live subscribers."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from examples.browser.api import Api

Json = dict[str, Any]

COLLECTION, TOPIC, AGGREGATE, WEBHOOK = "deliveries", "vans", "sales", "Demo receiver"
EXISTS, REJECTED = {409}, {400}
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


class Receiver(http.server.BaseHTTPRequestHandler):
    """Receives webhooks, and confirms the handshake by returning its challenge."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body["data"]).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base's name
        """Log nothing."""


def define(api: Api, tenant: str) -> bool:
    """Create the collection, the topic and the aggregate. Return whether they are new."""
    base = f"/api/v1/tenants/{tenant}"
    api.call("POST", f"{base}/collections", {"name": COLLECTION}, but=EXISTS)
    topic = {"name": TOPIC, "kind": "geo", "retention_s": 3600}
    api.call("POST", f"{base}/topics", topic, but=EXISTS)
    created = api.call("POST", f"{base}/aggregates", {"name": AGGREGATE, **SALES}, but=EXISTS)
    return created is not None


def receive_webhooks(api: Api, tenant: str) -> None:
    """Start a receiver, and send it the tenant's events, unless loopback targets are off."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"/api/v1/tenants/{tenant}/webhooks"
    body: Json = {"url": f"http://127.0.0.1:{server.server_port}/"}
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
