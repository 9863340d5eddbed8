"""The relay's process: `documents.outbox.loop` behind the paths that probes and scrapers ask."""

from __future__ import annotations

import json

from documents.outbox.loop import RelayLoop
from foundation.asgi import App, Receive, Scope, Send
from foundation.environment import environment
from foundation.logs import set_up_logging
from rillbase_server.health import Dependency, Health
from rillbase_server.lifespan import Lifespan


class NotRelaying(Exception):
    """The relay has not even been able to ask for the lease."""


def build_relay() -> App:
    """Put the layers together. The relay runs for as long as the server does."""
    settings = environment()
    set_up_logging(settings.rillbase_log_format, settings.rillbase_log_level)
    relay = RelayLoop()

    def relaying() -> None:
        if not relay.ready:
            raise NotRelaying

    own = Dependency("relay", relaying, required=True)
    served = Health(_status_of(relay), settings, [own])
    return Lifespan(served, start=[relay.start], stop=[relay.stop])


def _status_of(relay: RelayLoop) -> App:
    """Answer `/status` with how the relay stands, and nothing else."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        found = scope["path"] == "/status"
        body = json.dumps(relay.status() if found else {"title": "Not found", "status": 404})
        await send(
            {
                "type": "http.response.start",
                "status": 200 if found else 404,
                "headers": [
                    (b"content-type", b"application/json"),
                    (b"cache-control", b"no-store"),
                ],
            }
        )
        await send({"type": "http.response.body", "body": body.encode()})

    return answer
