"""The services that run outside the web server and the workers, and their processes.

The table names code as `module:attribute`, since the launcher reads it without importing Django.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceDeclaration:
    """One service: an object that works while its `run` does (`supervision.BackgroundService`)."""

    name: str
    #: Creates the object from the arguments of the process's command.
    factory: str
    #: Its name among the dependencies of `/readyz`.
    dependency: str
    #: Whether the start of an installation waits until this service is ready.
    awaited: bool = True
    #: Closes shared resources of a process. Called after all services have ended.
    close: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessDeclaration:
    """A process: a management command of the same name."""

    name: str
    services: tuple[ServiceDeclaration, ...]
    #: The default port for probes and scrapers.
    port: int
    #: The role whose connection is used to check the database.
    database_alias: str = "default"


RELAY = ServiceDeclaration("relay", "documents.outbox.loop:RelayLoop", "relay")
VIEWS = ServiceDeclaration(
    "views",
    "aggregates.following.follower:ViewFollower",
    "views",
    close=(
        "storage_engine.node.client:close",
        "documents.outbox.database:close_relay_pool",
        "tenants.error_log:aclose",
    ),
)
SOURCES = ServiceDeclaration(
    "sources",
    "sources.following.service:FollowerService",
    "sources",
    # Sources report their own states.
    awaited=False,
    close=(
        "documents.outbox.publisher:close",
        "documents.store.database:close_pool",
        "tenants.error_log:aclose",
    ),
)
BEAT = ServiceDeclaration("beat", "rillbase_server.processes.beat:Beat", "beat")
PIPELINE = ServiceDeclaration(
    "pipeline",
    "analytics.pipeline.idle_pipeline:Pipeline",
    "pipeline",
    # Queries see uploads without the pipeline, which only makes them cheaper.
    awaited=False,
)
GRID = ServiceDeclaration(
    "grid",
    "rillbase_server.processes.grid:build_supervisor",
    "nodes",
    # Only live queries need it, and they report when they are stale.
    awaited=False,
    close=("documents.outbox.database:close_relay_pool",),
)

#: The embedded installation runs `BACKGROUND` and the grid; others may run each service alone.
BACKGROUND = ProcessDeclaration("background", (RELAY, VIEWS, SOURCES, BEAT, PIPELINE), 8087)
GRID_PROCESS = ProcessDeclaration("grid", (GRID,), 8082, database_alias="relay")
PROCESSES = {
    process.name: process
    for process in (
        BACKGROUND,
        GRID_PROCESS,
        ProcessDeclaration("relay", (RELAY,), 8081),
        ProcessDeclaration("views", (VIEWS,), 8083),
        ProcessDeclaration("pipeline", (PIPELINE,), 8084),
        ProcessDeclaration("sources", (SOURCES,), 8085),
        ProcessDeclaration("beat", (BEAT,), 8086),
    )
}
