"""The connection to Rillbase: a topic, and one connection for all drivers."""

from __future__ import annotations

import json
import queue
import threading
from typing import Any

import requests
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

Frame = dict[str, Any]
TIMEOUT_S = 10.0


class CallRejected(Exception):
    """Rillbase rejected a call; the text contains the reason."""


class Line:
    """Sends messages, and keeps received ones until they are fetched."""

    def __init__(self, connection: ClientConnection, topic: str) -> None:
        self.topic = topic
        self.error = ""
        self._connection = connection
        self._frames: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def say(self, **message: object) -> None:
        self._connection.send(json.dumps(message))

    def received(self) -> list[Frame]:
        """Return the messages received since the last call."""
        frames = []
        while not self._frames.empty():
            frame = self._frames.get()
            if frame["type"] == "error":
                self.error = str(frame["error"].get("detail") or frame["error"]["title"])
            frames.append(frame)
        return frames

    def close(self) -> None:
        self._connection.close()
        self._thread.join()

    def _listen(self) -> None:
        try:
            for text in self._connection:
                self._frames.put(json.loads(text))
        except ConnectionClosed as closed:
            self.error = f"the connection was closed: {closed}"


def opened(url: str, key: str, topic: str) -> Line:
    """Create the topic unless it exists, and connect."""
    headers = {"Authorization": f"Bearer {key}"}
    _make_topic(url, headers, topic)
    connection = connect(
        url.replace("http", "ws", 1) + "/v1/realtime",
        additional_headers=headers,
        subprotocols=["rillbase.v1"],  # type: ignore[list-item]
        open_timeout=TIMEOUT_S,
    )
    return Line(connection, topic)


def _make_topic(url: str, headers: dict[str, str], topic: str) -> None:
    who = requests.get(f"{url}/v1/whoami", headers=headers, timeout=TIMEOUT_S)
    if not who.ok:
        raise CallRejected(who.json().get("detail") or who.json()["title"])
    created = requests.post(
        f"{url}/api/v1/tenants/{who.json()['tenant']}/topics",
        json={"name": topic, "kind": "geo", "retention_s": 3600},
        headers=headers,
        timeout=TIMEOUT_S,
    )
    answer = created.json()
    if not created.ok and answer["code"] != "name_taken":
        raise CallRejected(
            f"the topic {topic!r} is not available: {answer.get('detail') or answer['title']}"
        )
