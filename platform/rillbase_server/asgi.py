"""The ASGI application: Django behind health probes behind the edge."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rillbase_server.settings")

from foundation import tracing
from foundation.environment import environment
from foundation.limits import limiter
from foundation.logs import set_up_logging
from foundation.task_tracing import instrument_celery
from rillbase_server.dependencies import GridProbe
from rillbase_server.edge import Edge, EdgeSettings
from rillbase_server.health import Dependency, HealthEndpoints
from rillbase_server.lifespan import Lifespan
from rillbase_server.routed_handler import routed_application


def build_application() -> Edge:
    """Read the settings, start background work, and assemble the layers."""
    settings = environment()
    set_up_logging(settings.rillbase_log_format, settings.rillbase_log_level)
    django = routed_application()
    # These import models, which requires that Django is set up.
    from aggregates.api.operations import OPERATIONS as AGGREGATES  # noqa: PLC0415
    from analytics.api.iceberg_operations import CATALOGUE, FILE_OPERATIONS  # noqa: PLC0415
    from analytics.api.iceberg_plane import IcebergPlane  # noqa: PLC0415
    from analytics.api.operations import OPERATIONS as ANALYTICS  # noqa: PLC0415
    from analytics.ingest.upload_decoder import close as close_upload_workers  # noqa: PLC0415
    from analytics.sql.worker_pools import close as close_sql_workers  # noqa: PLC0415
    from data_plane.calls import DataPlane  # noqa: PLC0415
    from documents.api.operations import OPERATIONS  # noqa: PLC0415
    from documents.outbox import publisher  # noqa: PLC0415
    from documents.store.database import close_pool  # noqa: PLC0415
    from documents.transfer.parquet.parquet_workers import workers  # noqa: PLC0415
    from rillbase_server import garbage, live  # noqa: PLC0415
    from rillbase_server.graphql.assembly import Schemas  # noqa: PLC0415
    from rillbase_server.graphql.http import GraphqlHttp  # noqa: PLC0415
    from rillbase_server.graphql.socket import GraphqlServer  # noqa: PLC0415
    from rillbase_server.routing import routes  # noqa: PLC0415
    from storage_engine.topics.api.operations import OPERATIONS as TOPICS  # noqa: PLC0415
    from tenants import error_log  # noqa: PLC0415
    from tenants.request_log import recorder  # noqa: PLC0415

    if tracing.start(settings.otel_exporter_otlp_endpoint, "rillbase-web") is not None:
        tracing.instrument_database()
        instrument_celery()
    alive = live.build()
    operations = [*OPERATIONS, *TOPICS, *AGGREGATES, *ANALYTICS, *alive.operations]
    iceberg = IcebergPlane(django, [*CATALOGUE, *FILE_OPERATIONS])
    data_plane = DataPlane(iceberg, operations)
    probe = GridProbe()
    # Without the grid, the API keeps working but live queries are stale.
    grid = Dependency("grid", probe.check, required=False, figures=probe.figures)
    inner = alive.around(data_plane)
    graphql = GraphqlServer(inner, Schemas(), alive.kinds, alive.registry)
    http = HealthEndpoints(GraphqlHttp(inner, graphql.schemas), settings, [grid])
    publisher.publish_from_here()
    return Edge(
        Lifespan(
            routes(http, alive, graphql),
            start=[alive.start, garbage.settle],
            stop=[
                alive.stop,
                close_upload_workers,
                workers.close,
                close_sql_workers,
                publisher.close,
                close_pool,
                limiter().aclose,
                error_log.aclose,
                recorder.aclose,
            ],
        ),
        EdgeSettings.of(settings),
    )


def wait_in_standby() -> None:
    """Wait until the launcher makes this the serving process. Its end is the end of the input."""
    if os.environ.pop("RILLBASE_STANDBY", "") and not sys.stdin.readline():
        sys.exit()


application = build_application()
wait_in_standby()
