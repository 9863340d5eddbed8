"""Receivers of webhooks, as a tenant would write them: real servers that check signatures.

The check is a separate implementation of the specification and shares no code with the product.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_S = 300


@dataclass(frozen=True)
class Message:
    """One message that arrived. Header names are in lower case."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, object]:
        event: dict[str, object] = json.loads(self.body)
        return event

    def signed_by(self, secret: str) -> bool:
        """Return whether one of the signatures was made with this secret and a recent time."""
        moment = self.headers["webhook-timestamp"]
        if abs(time.time() - int(moment)) > TOLERANCE_S:
            return False
        key = base64.b64decode(secret.removeprefix("whsec_"))
        content = b".".join((self.id.encode(), moment.encode(), self.body))
        expected = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
        return any(
            version == "v1" and hmac.compare_digest(signature, expected)
            for version, _, signature in (
                part.partition(",") for part in self.headers["webhook-signature"].split()
            )
        )


Answer = tuple[int, bytes]
Behaviour = Callable[[Message], Answer]


def echo_challenges(message: Message) -> Answer:
    """Confirm the handshake and accept everything."""
    data = message.event["data"]
    assert isinstance(data, dict)
    if message.event["type"] == "webhook.verification":
        return 200, json.dumps({"challenge": data["challenge"]}).encode()
    return 204, b""


@dataclass
class WebhookReceiver:
    """A server whose behaviour may change at any time."""

    url: str = ""
    behaviour: Behaviour = echo_challenges
    messages: list[Message] = field(default_factory=list)
    #: Closed while the receiver should delay its answers.
    gate: threading.Event = field(default_factory=threading.Event)

    def events(self) -> list[object]:
        """Return the types of the events that arrived, without handshakes."""
        types = [message.event["type"] for message in self.messages]
        return [t for t in types if t != "webhook.verification"]

    def answer(self, status: int, body: bytes = b"") -> None:
        """Answer all requests like this from now on."""
        self.behaviour = lambda _message: (status, body)


@contextmanager
def webhook_receiver() -> Iterator[WebhookReceiver]:
    """Serve on a free port of the loopback interface until the block ends."""
    state = WebhookReceiver()
    state.gate.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            message = Message({n.lower(): v for n, v in self.headers.items()}, body)
            state.messages.append(message)
            state.gate.wait(30)
            status, answer = state.behaviour(message)
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- its name there
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.url = f"http://127.0.0.1:{http.server_address[1]}/hooks"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield state
        finally:
            state.gate.set()
            http.shutdown()
            thread.join()
