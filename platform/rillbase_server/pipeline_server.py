"""The process of the analytics pipeline, behind what probes and scrapers ask."""

from __future__ import annotations

from collections.abc import Callable

from analytics.pipeline.coordinator import Coordinator
from analytics.pipeline.workers import ThreadWorkers, Workers
from foundation.asgi import App
from foundation.environment import environment
from foundation.logs import set_up_logging
from rillbase_server.health import Dependency, Health
from rillbase_server.lifespan import Lifespan
from rillbase_server.status_app import status_app


class NotLooking(Exception):
    """It has not even been able to ask whether somebody else leads."""


def build_pipeline(give_up: Callable[[], None]) -> App:
    """Put the layers together. Stages run for as long as the server does.

    `give_up` is called when nothing can be run any more.
    """
    settings = environment()
    set_up_logging(settings.rillbase_log_format, settings.rillbase_log_level)
    coordinator = Coordinator(_workers(settings.rillbase_analytics_workers), give_up)

    def looking() -> None:
        if not coordinator.ready:
            raise NotLooking

    own = Dependency("pipeline", looking, required=True)
    served = Health(status_app(coordinator.status), settings, [own])
    return Lifespan(served, start=[coordinator.start], stop=[coordinator.stop])


def _workers(kind: str) -> Workers:
    if kind == "threads":
        return ThreadWorkers()
    # Spark takes a second to import, and is there only where it is used.
    from analytics.pipeline.spark import SparkWorkers  # noqa: PLC0415

    return SparkWorkers()
