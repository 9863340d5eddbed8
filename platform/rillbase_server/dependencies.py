"""Short, bounded checks of the server's dependencies, made from dedicated threads.

All probes share a few threads. If a frozen dependency blocks them, probes time out, as intended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from foundation import metrics
from foundation.errors import StorageFull
from foundation.json_types import JsonValue

log = logging.getLogger(__name__)

PROBE_THREADS = 6
VALKEY_TIMEOUT_S = 0.5

_threads = ThreadPoolExecutor(PROBE_THREADS, thread_name_prefix="probe")


async def run(question: Callable[[], None], timeout_s: float) -> Exception | None:
    """Run a check in a thread; return its error, or None."""
    loop = asyncio.get_running_loop()
    try:
        await asyncio.wait_for(loop.run_in_executor(_threads, question), timeout_s)
    except Exception as error:
        log.debug("a dependency is down", exc_info=True)
        return error
    return None


class NotMigrated(Exception):
    """The database lacks migrations of this release."""


class DatabaseProbe:
    """Checks the database with the role and pool of the process, usually those of requests."""

    def __init__(self, alias: str = "default") -> None:
        self._alias = alias
        self._known_migrated = False

    def ping(self) -> None:
        self._fetch("SELECT 1")

    def migrated(self) -> None:
        """Check that this release's migrations are applied; later ones may be, too."""
        # Migrations are never unapplied under a running server, so success is cached. `ping`
        # queries the database each time.
        if self._known_migrated:
            return
        from django.db.migrations.loader import MigrationLoader  # noqa: PLC0415 - after set-up

        applied = set(self._fetch("SELECT app, name FROM django_migrations"))
        needed = MigrationLoader(None, ignore_no_migrations=True).graph.leaf_nodes()
        missing = [f"{app}.{name}" for app, name in needed if (app, name) not in applied]
        if missing:
            raise NotMigrated(", ".join(missing))
        self._known_migrated = True

    def _fetch(self, query: str) -> list[tuple[object, ...]]:
        from django.db import connections  # noqa: PLC0415 - after set-up

        connection = connections[self._alias]
        try:
            with connection.cursor() as cursor:
                cursor.execute(query)
                return list(cursor.fetchall())
        finally:
            connection.close()


class ValkeyProbe:
    """Checks one Valkey server over a persistent connection."""

    def __init__(self, url: str) -> None:
        self.client = Redis.from_url(
            url,
            socket_timeout=VALKEY_TIMEOUT_S,
            socket_connect_timeout=VALKEY_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        )

    def ping(self) -> None:
        self.client.ping()


class StorageProbe(ValkeyProbe):
    """Checks the storage node, which speaks Valkey's protocol and reports whether it can write."""

    def ping(self) -> None:
        if self.client.info("server").get("engine") == "storage_full":
            raise StorageFull


class QueueProbe:
    """Measures the length of task queues, for metrics."""

    def __init__(self, broker_url: str) -> None:
        self._valkey = ValkeyProbe(broker_url)

    def measure(self) -> None:
        from foundation.tasks.queues import QUEUES  # noqa: PLC0415 - after set-up

        for queue in QUEUES:
            try:
                waiting = self._valkey.client.llen(queue)
            except RedisError:
                # The length is unknown while the broker is unreachable; zero would be wrong.
                metrics.CELERY_QUEUE_LENGTH.labels(queue).set(float("nan"))
                raise
            metrics.CELERY_QUEUE_LENGTH.labels(queue).set(int(str(waiting)))


class GridDegraded(Exception):
    """A node of the shared grid is not ready, so some live queries are stale."""


class GridProbe:
    """Checks whether all nodes of the shared grid are ready."""

    def __init__(self) -> None:
        self._figures: dict[str, JsonValue] = {}

    def figures(self) -> Mapping[str, object]:
        """Return the figures of the last check."""
        return self._figures

    def check(self) -> None:
        from django.db import connections  # noqa: PLC0415 - after set-up

        from realtime.clusters import epochs, grids  # noqa: PLC0415

        self._figures = {}
        try:
            served = epochs.shared()
        finally:
            connections[epochs.ALIAS].close()
        self._figures = grids.readiness(served)
        if self._figures["watching"] != self._figures["nodes"]:
            raise GridDegraded


class ClusterProbe:
    """Counts tenants' clusters by state, for metrics."""

    def measure(self) -> None:
        from django.db import connections  # noqa: PLC0415 - after set-up
        from django.db.models import Count  # noqa: PLC0415

        from realtime.models import Cluster  # noqa: PLC0415

        try:
            rows = Cluster.unscoped.using("relay").values_list("state")
            counts = dict(rows.annotate(Count("id")).order_by())
        finally:
            connections["relay"].close()
        for state in Cluster.State.values:
            metrics.CLUSTERS.labels(state).set(counts.get(state, 0))
