"""The process that keeps views: `aggregates.following` behind what probes and scrapers ask."""

from __future__ import annotations

from aggregates.following.follower import ViewFollower
from foundation.asgi import App
from foundation.environment import environment
from foundation.logs import set_up_logging
from rillbase_server.health import Dependency, HealthEndpoints
from rillbase_server.lifespan import Lifespan
from rillbase_server.status_app import NotFollowing, status_app
from tenants import error_log


def build_views() -> App:
    """Put the layers together. Views are followed for as long as the server runs."""
    settings = environment()
    set_up_logging(settings.rillbase_log_format, settings.rillbase_log_level)
    follower = ViewFollower()

    def following() -> None:
        if not follower.ready:
            raise NotFollowing

    own = Dependency("views", following, required=True)
    served = HealthEndpoints(status_app(follower.status), settings, [own])
    return Lifespan(served, start=[follower.start], stop=[follower.stop, error_log.aclose])
