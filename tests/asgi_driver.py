"""Calls an ASGI application as a server does, one request at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from foundation.asgi import App, Message, Scope


@dataclass
class Answer:
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    def header(self, name: str) -> str:
        items = [value for key, value in self.headers if key == name]
        assert len(items) == 1, f"{name}: {items}"
        return items[0]

    def has(self, name: str) -> bool:
        return any(key == name for key, _ in self.headers)

    def json(self) -> Any:
        return json.loads(self.body)


def http_scope(
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    client: tuple[str, int] | None = ("192.0.2.9", 5000),
) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()],
        "client": client,
        "server": ("127.0.0.1", 80),
    }


async def ask(app: App, scope: Scope, pieces: Sequence[bytes] = (b"",)) -> Answer:
    """Send a request with a body in several chunks, and collect the response."""
    waiting = [
        {"type": "http.request", "body": piece, "more_body": number < len(pieces)}
        for number, piece in enumerate(pieces, start=1)
    ]
    answer = Answer()

    async def receive() -> Message:
        if not waiting:
            await asyncio.Event().wait()  # the client stays connected and sends nothing more
        return waiting.pop(0)

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            assert not answer.status, "the response was started twice"
            answer.status = message["status"]
            answer.headers = [(k.decode(), v.decode()) for k, v in message["headers"]]
        else:
            answer.body += message.get("body", b"")

    await app(scope, receive, send)
    return answer
