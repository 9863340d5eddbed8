"""The grid's process: `realtime.grid.supervisor` behind the paths that probes and scrapers ask."""

from __future__ import annotations

from collections.abc import Callable

from foundation.asgi import App
from foundation.environment import environment
from foundation.logs import set_up_logging
from realtime.grid.launcher import Launcher
from realtime.grid.processes import ProcessLauncher
from realtime.grid.supervisor import GridSupervisor
from rillbase_server.health import Dependency, HealthEndpoints
from rillbase_server.lifespan import Lifespan
from rillbase_server.status_app import status_app


class NotWatching(Exception):
    """Some node of the grid does not watch yet, or no longer."""


def build_grid(give_up: Callable[[], None], epoch: int | None) -> App:
    """Put the layers together. Nodes run for as long as the server does.

    `give_up` is called when nothing can be started any more. Without an epoch it is the grid that
    tenants share.
    """
    settings = environment()
    set_up_logging(settings.rillbase_log_format, settings.rillbase_log_level)
    supervisor = GridSupervisor(_launcher(settings.rillbase_grid), give_up, epoch)

    def watching() -> None:
        if not supervisor.ready:
            raise NotWatching

    own = Dependency("nodes", watching, required=True, figures=supervisor.readiness)
    # Nodes log in with one role; that of a tenant's own grid has no other.
    served = HealthEndpoints(status_app(supervisor.status), settings, [own], database_alias="relay")
    return Lifespan(served, start=[supervisor.start], stop=[supervisor.stop])


def _launcher(kind: str) -> Launcher:
    if kind == "processes":
        return ProcessLauncher()
    # Spark takes a second to import, and is there only where it is used.
    from realtime.grid.spark import SparkLauncher  # noqa: PLC0415

    return SparkLauncher()
