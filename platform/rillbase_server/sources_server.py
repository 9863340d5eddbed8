"""The process that follows PostgreSQL tables: `sources.following` behind what probes and scrapers
ask.
"""

from __future__ import annotations

from documents.outbox import publisher
from documents.store.database import close_pool
from foundation.asgi import App
from foundation.environment import environment
from foundation.logs import set_up_logging
from rillbase_server import garbage
from rillbase_server.health import Dependency, HealthEndpoints
from rillbase_server.lifespan import Lifespan
from rillbase_server.status_app import NotFollowing, status_app
from sources.following.service import FollowerService
from tenants import error_log


def build_sources() -> App:
    """Put the layers together. Sources are followed for as long as the server runs."""
    settings = environment()
    set_up_logging(settings.rillbase_log_format, settings.rillbase_log_level)
    service = FollowerService()

    def following() -> None:
        if not service.ready:
            raise NotFollowing

    # Subscribers are notified from here, and not only by the relay.
    publisher.publish_from_here()
    own = Dependency("sources", following, required=True)
    served = HealthEndpoints(status_app(service.status), settings, [own])
    return Lifespan(
        served,
        start=[service.start, garbage.settle],
        stop=[service.stop, publisher.close, close_pool, error_log.aclose],
    )
