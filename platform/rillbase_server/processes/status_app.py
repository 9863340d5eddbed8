"""`/status` of processes that serve no clients: their state, for operators."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from foundation.asgi import App, Receive, Scope, Send


class NotFollowing(Exception):
    """The process has not determined yet whether another one follows."""


def status_app(status: Callable[[], Mapping[str, object]]) -> App:
    """Serve only `/status`, with the state of the process."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exists = scope["path"] == "/status"
        body = json.dumps(status() if exists else {"title": "Not found", "status": 404})
        await send(
            {
                "type": "http.response.start",
                "status": 200 if exists else 404,
                "headers": [
                    (b"content-type", b"application/json"),
                    (b"cache-control", b"no-store"),
                ],
            }
        )
        await send({"type": "http.response.body", "body": body.encode()})

    return answer
