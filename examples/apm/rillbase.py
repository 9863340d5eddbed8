"""The connection to Rillbase: calls that add events, and subscriptions to rows."""

from __future__ import annotations

import json
import threading
from typing import Any

import requests
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

Json = dict[str, Any]
TIMEOUT_S = 30.0

#: Each request, counted and timed in buckets of five minutes, for endpoints, applications and
#: customers.
DEFINITION: Json = {
    "dimensions": ["customer", "app", "server", "endpoint"],
    "time": {"field": "at", "bucket": "5m"},
    "measures": {
        "count": {"op": "count"},
        "latency": {"op": "avg", "field": "latency_ms"},
        "peak": {"op": "max", "field": "latency_ms"},
    },
    "rollups": [["customer", "app", "endpoint"], ["customer", "app"], ["customer"]],
    "retention": "90d",
}


class CallRejected(Exception):
    """Rillbase rejected a call; the text contains the reason."""


class SubscribedRows:
    """The rows of one subscription, as they are delivered."""

    def __init__(self) -> None:
        self.rows: dict[str, Json] = {}
        self.n_updates = 0

    def take(self, frame: Json) -> None:
        if frame["type"] == "result":
            if frame["part"] == 0:
                self.rows = {}
            self.rows |= {_key(item["id"]): item["document"] for item in frame["items"]}
        elif frame["type"] == "event":
            self.n_updates += 1
            if frame["match"] == "remove":
                self.rows.pop(_key(frame["key"]), None)
            else:
                self.rows[_key(frame["key"])] = frame["document"]


class Line:
    """Adds events, and subscribes to rows."""

    def __init__(self, url: str, headers: dict[str, str], name: str) -> None:
        self.name = name
        self.error = ""
        self.added = 0
        self._url, self._session = url, requests.Session()
        self._session.headers.update(headers)
        self._watched: dict[str, SubscribedRows] = {}
        self._connection: ClientConnection = connect(
            url.replace("http", "ws", 1) + "/v1/realtime",
            additional_headers=headers,
            subprotocols=["rillbase.v1"],  # type: ignore[list-item]
            open_timeout=TIMEOUT_S,
        )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def add(self, events: list[Json]) -> None:
        """Add events, all of them or none."""
        answer = self._session.post(
            f"{self._url}/v1/aggregates/{self.name}/events", json=events, timeout=TIMEOUT_S
        )
        if not answer.ok:
            raise CallRejected(_why(answer))
        self.added += answer.json()["applied"]

    def watch(self, name: str, **query: object) -> SubscribedRows:
        """Subscribe to rows."""
        watched = self._watched[name] = SubscribedRows()
        message = {"type": "subscribe", "id": name, "aggregate": self.name, **query}
        self._connection.send(json.dumps(message))
        return watched

    def close(self) -> None:
        self._connection.close()
        self._thread.join()

    def _listen(self) -> None:
        try:
            for text in self._connection:
                self._take(json.loads(text))
        except ConnectionClosed as closed:
            self.error = f"the connection was closed: {closed}"

    def _take(self, frame: Json) -> None:
        if frame["type"] == "error" or (frame["type"] == "end" and frame["error"]):
            self.error = str(frame["error"].get("detail") or frame["error"]["title"])
        elif frame.get("id") in self._watched:
            self._watched[frame["id"]].take(frame)


def opened(url: str, key: str, name: str) -> Line:
    """Create the aggregate unless it exists, and connect."""
    headers = {"Authorization": f"Bearer {key}"}
    who = requests.get(f"{url}/v1/whoami", headers=headers, timeout=TIMEOUT_S)
    if not who.ok:
        raise CallRejected(_why(who))
    created = requests.post(
        f"{url}/api/v1/tenants/{who.json()['tenant']}/aggregates",
        json={"name": name, **DEFINITION},
        headers=headers,
        timeout=TIMEOUT_S,
    )
    if not created.ok and created.json()["code"] != "name_taken":
        raise CallRejected(_why(created))
    return Line(url, headers, name)


def _key(values: Json) -> str:
    return json.dumps(values, sort_keys=True)


def _why(answer: requests.Response) -> str:
    problem = answer.json()
    return str(problem.get("detail") or problem["title"])
