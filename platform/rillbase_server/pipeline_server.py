"""The process of the analytics pipeline, behind what probes and scrapers ask."""

from __future__ import annotations

from collections.abc import Callable

from analytics.pipeline.idle_pipeline import Pipeline
from foundation.asgi import App
from foundation.environment import environment
from foundation.logs import set_up_logging
from rillbase_server.health import Dependency, HealthEndpoints
from rillbase_server.lifespan import Lifespan
from rillbase_server.status_app import status_app


class NotLooking(Exception):
    """The process could not read its work, nor whether another process leads."""


def build_pipeline(give_up: Callable[[], None]) -> App:
    """Put the layers together. Stages run for as long as the server does.

    `give_up` is called when nothing can be run any more.
    """
    settings = environment()
    set_up_logging(settings.rillbase_log_format, settings.rillbase_log_level)
    pipeline = Pipeline(give_up)

    def looking() -> None:
        if not pipeline.ready:
            raise NotLooking

    own = Dependency("pipeline", looking, required=True)
    served = HealthEndpoints(status_app(pipeline.status), settings, [own])
    return Lifespan(served, start=[pipeline.start], stop=[pipeline.stop])
