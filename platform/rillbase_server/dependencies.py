"""Short, bounded checks of the server's dependencies, made from dedicated threads.

The threads are few and shared by all probes: a frozen dependency may hold some of them for a
while, and probes then time out, which is what they should say.
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
    """Ask in a thread; return the error, or None when all is well."""
    loop = asyncio.get_running_loop()
    try:
        await asyncio.wait_for(loop.run_in_executor(_threads, question), timeout_s)
    except Exception as error:
        log.debug("a dependency is down", exc_info=True)
        return error
    return None


class NotMigrated(Exception):
    """The database lacks migrations that this code needs."""


class DatabaseProbe:
    """Asks as the role and through the pool that the process works with: requests' own, usually."""

    def __init__(self, alias: str = "default") -> None:
        self._alias = alias
        self._known_migrated = False

    def ping(self) -> None:
        self._fetch("SELECT 1")

    def migrated(self) -> None:
        """Check that this code's migrations are applied; later ones may be too."""
        # Migrations are never unapplied under a running server, so a yes is remembered. The
        # database itself is asked by `ping` each time.
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
    """Asks one Valkey server, over a connection that is kept."""

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
    """Asks the storage node, which answers as a Valkey does and says whether it can write."""

    def ping(self) -> None:
        if self.client.info("server").get("engine") == "storage_full":
            raise StorageFull


class QueueProbe:
    """Measures how many tasks wait, for the metrics."""

    def __init__(self, broker_url: str) -> None:
        self._valkey = ValkeyProbe(broker_url)

    def measure(self) -> None:
        from foundation.tasks.queues import QUEUES  # noqa: PLC0415 - after set-up

        for queue in QUEUES:
            try:
                waiting = self._valkey.client.llen(queue)
            except RedisError:
                # Nothing is known while the broker is away; zero would be a lie.
                metrics.CELERY_QUEUE_LENGTH.labels(queue).set(float("nan"))
                raise
            metrics.CELERY_QUEUE_LENGTH.labels(queue).set(int(str(waiting)))


class GridDegraded(Exception):
    """Some node of the grid that tenants share does not watch: some live queries are stale."""


class GridProbe:
    """Looks whether the grid that tenants share watches."""

    def __init__(self) -> None:
        self._figures: dict[str, JsonValue] = {}

    def figures(self) -> Mapping[str, object]:
        """Return what the last look found."""
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
    """Counts tenants' clusters by how they stand, for the metrics."""

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
