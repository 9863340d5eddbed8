"""The relay's process: `documents.outbox.loop` behind the paths that probes and scrapers ask."""

from __future__ import annotations

from documents.outbox.loop import RelayLoop
from foundation.asgi import App
from foundation.environment import environment
from foundation.logs import set_up_logging
from rillbase_server.health import Dependency, HealthEndpoints
from rillbase_server.lifespan import Lifespan
from rillbase_server.status_app import status_app


class NotRelaying(Exception):
    """The relay has not been able to request the lease."""


def build_relay() -> App:
    """Put the layers together. The relay runs for as long as the server does."""
    settings = environment()
    set_up_logging(settings.rillbase_log_format, settings.rillbase_log_level)
    relay = RelayLoop()

    def relaying() -> None:
        if not relay.ready:
            raise NotRelaying

    own = Dependency("relay", relaying, required=True)
    served = HealthEndpoints(status_app(relay.status), settings, [own])
    return Lifespan(served, start=[relay.start], stop=[relay.stop])
