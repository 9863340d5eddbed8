"""Prometheus metrics: what is measured, and how it is rendered.

Labels come from small closed sets: route templates, methods, status classes, policy names. A raw
path or a tenant's name never becomes one, since both could show one tenant another's data and
would let any caller grow the process's memory.

With several web workers the launcher sets PROMETHEUS_MULTIPROC_DIR before this module is
imported; each process then writes its values to files there, and the worker that is scraped adds
them up.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

CONTENT_TYPE = CONTENT_TYPE_LATEST
UNMATCHED_ROUTE = "unmatched"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
POOL_SAMPLE_INTERVAL_S = 5.0

HTTP_REQUESTS = Histogram(
    "rillbase_http_request_duration_seconds",
    "Time from the head of the request to the last byte of the response.",
    ("route", "method", "status"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
HTTP_IN_PROGRESS = Gauge(
    "rillbase_http_requests_in_progress",
    "Requests in progress.",
    multiprocess_mode="livesum",
)
CONNECTIONS = Gauge(
    "rillbase_connections",
    "Open client connections of all protocols.",
    multiprocess_mode="livesum",
)
CONNECTIONS_CLOSED = Counter(
    "rillbase_connections_closed_total",
    "Client connections that the server rejected or closed because of the client, by reason.",
    ("reason",),
)
STORAGE_FULL = Counter(
    "rillbase_storage_full",
    "Calls that were rejected because a disk was full",
)
LIMIT_DECISIONS = Counter(
    "rillbase_limit_decisions_total",
    "Rate-limit decisions, by the limit that rejected the request or came closest to it; "
    "`counted` is `shared` (in Valkey) or `local` (in this process).",
    ("policy", "outcome", "counted"),
)
LIMITS_STORE_UP = Gauge(
    "rillbase_limits_store_up",
    "1 while limits are counted in Valkey, 0 while each process counts on its own.",
    multiprocess_mode="livemin",
)
DATABASE_POOL_CONNECTIONS = Gauge(
    "rillbase_database_pool_connections",
    "Connections of the pool, by database alias and state (idle, used, limit).",
    ("database", "state"),
    multiprocess_mode="livesum",
)
DATABASE_POOL_WAITING = Gauge(
    "rillbase_database_pool_waiting",
    "Threads that wait for a connection.",
    ("database",),
    multiprocess_mode="livesum",
)
DATABASE_POOL_WAITED = Gauge(
    "rillbase_database_pool_waited_seconds",
    "Time spent waiting for a connection since the process started.",
    ("database",),
    multiprocess_mode="livesum",
)
SANDBOX_JOBS = Counter(
    "rillbase_sandbox_jobs_total",
    "Jobs of sandboxed workers, by pool and outcome (done, memory, cpu_time, deadline, "
    "temporary_space, crash).",
    ("pool", "outcome"),
)
SANDBOX_WAITING = Gauge(
    "rillbase_sandbox_jobs_waiting",
    "Jobs that wait for a sandboxed worker.",
    ("pool",),
    multiprocess_mode="livesum",
)
CELERY_QUEUE_LENGTH = Gauge(
    "rillbase_celery_queue_length",
    "Tasks that wait in the queue.",
    ("queue",),
    multiprocess_mode="mostrecent",
)
CLUSTERS = Gauge(
    "rillbase_clusters",
    "Tenants' dedicated grids, by state.",
    ("state",),
    multiprocess_mode="mostrecent",
)
PUBLISHED = Counter(
    "rillbase_events_published_total",
    "Committed transactions by outcome: `published` by the writing process, or left to the relay "
    "because the event layer was `unavailable`, the queue `full`, or the attempt `failed`.",
    ("outcome",),
)
PUBLISH_DURATION = Histogram(
    "rillbase_events_publish_duration_seconds",
    "Time from a commit to the write stream, when the writing process publishes.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
MARKS_LOST = Counter(
    "rillbase_outbox_marks_lost_total",
    "Published transactions whose marks could not be written; the relay publishes them again.",
)

RELAY_LEADING = Gauge(
    "rillbase_relay_leading",
    "1 while this relay holds the lease.",
    multiprocess_mode="livesum",
)
RELAY_UNMARKED = Gauge(
    "rillbase_relay_unmarked_transactions",
    "Transactions in the outbox without a mark, as of the last listing.",
    multiprocess_mode="livemax",
)
RELAY_LAG = Gauge(
    "rillbase_relay_oldest_unmarked_seconds",
    "Age of the oldest row in the outbox without a mark.",
    multiprocess_mode="livemax",
)
RELAY_PUBLISHED = Counter(
    "rillbase_relay_published_total",
    "Entries that the relay appended because their writers did not, or again after the event "
    "layer lost its data.",
)
RELAY_TICKS = Counter(
    "rillbase_relay_ticks_total",
    "Number of times that all write streams were proven complete.",
)
RELAY_REFUSED = Counter(
    "rillbase_relay_refused_total",
    "Requests of the relay that the event layer rejected, by verdict.",
    ("verdict",),
)
FEED_PUBLISHED = Counter(
    "rillbase_feed_published_total",
    "After-images of native collections that the feed appended.",
)
FEED_TICKS = Counter(
    "rillbase_feed_ticks_total",
    "Number of times that the write streams of native collections were proven complete.",
)

VIEWS_LEADING = Gauge(
    "rillbase_views_leading",
    "1 while this process follows collections for views.",
    multiprocess_mode="livesum",
)
VIEWS = Gauge(
    "rillbase_views",
    "Views over collections, by state: `in_step`, `building`, `waiting` for an unavailable "
    "server, `failed`.",
    ("state",),
    multiprocess_mode="livesum",
)
VIEWS_LAG = Gauge(
    "rillbase_views_lag_seconds",
    "Age of the oldest point in time up to which a view in step is complete.",
    multiprocess_mode="livemax",
)
VIEWS_BUILDS = Counter(
    "rillbase_views_builds_total",
    "Generations of views that were started.",
)

SOURCES_LEADING = Gauge(
    "rillbase_sources_leading",
    "1 while this process follows PostgreSQL tables for collections.",
    multiprocess_mode="livesum",
)
SOURCES = Gauge(
    "rillbase_sources",
    "Collections whose documents come from a PostgreSQL table, by state: `starting`, `copying`, "
    "`live`, `paused`, `waiting` for an unreachable database, `halted` until someone changes "
    "something, `removing` until its slot and publication are dropped.",
    ("state",),
    multiprocess_mode="livesum",
)
SOURCES_SEEN = Gauge(
    "rillbase_sources_seen_timestamp_seconds",
    "Time at which the leader last read the list of sources.",
    multiprocess_mode="livemax",
)
SOURCE_LAG = Gauge(
    "rillbase_sources_lag_seconds",
    "Delay of the last transaction of the source that is furthest behind.",
    multiprocess_mode="livemax",
)
SOURCE_SLOT_BYTES = Gauge(
    "rillbase_sources_slot_bytes",
    "Log that a database retains for the slot that makes it retain the most.",
    multiprocess_mode="livemax",
)
SOURCE_TRANSACTIONS = Counter(
    "rillbase_source_transactions_total",
    "Transactions of followed tables that were applied to documents.",
)
SOURCE_CHANGES = Counter(
    "rillbase_source_changes_total",
    "Row changes of followed tables that were applied to documents.",
)
SOURCE_GROUPS = Histogram(
    "rillbase_source_group_seconds",
    "Time to apply a batch of transactions.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
SOURCE_COPIES = Counter(
    "rillbase_source_copies_total",
    "Tables that were compared with their documents as a whole, by reason.",
    ("reason",),
)

PIPELINE_LEADING = Gauge(
    "rillbase_pipeline_leading",
    "1 while this process runs the analytics pipeline.",
    multiprocess_mode="livesum",
)
PIPELINE_LAG = Gauge(
    "rillbase_pipeline_unsorted_seconds",
    "Age of the oldest upload that has not been sorted.",
    multiprocess_mode="livemax",
)
PIPELINE_STUCK = Gauge(
    "rillbase_pipeline_stuck_datasets",
    "Datasets whose last step failed.",
    multiprocess_mode="livemax",
)
PIPELINE_STEPS = Histogram(
    "rillbase_pipeline_step_duration_seconds",
    "Duration of successful steps, by stage.",
    ("step",),
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
PIPELINE_ROWS = Counter(
    "rillbase_pipeline_rows_total",
    "Rows processed, by stage.",
    ("step",),
)
PIPELINE_FAILURES = Counter(
    "rillbase_pipeline_failures_total",
    "Failed steps, which are retried, by stage.",
    ("step",),
)

SOCKETS = Gauge(
    "rillbase_sockets",
    "Authenticated WebSocket connections.",
    multiprocess_mode="livesum",
)

SERVER_MESSAGES = Counter(
    "rillbase_server_messages_total",
    "Messages to other server processes, by outcome.",
    ["outcome"],
)

GRID_NODE_UP = Gauge(
    "rillbase_grid_node_up",
    "1 while a grid node holds the lease of its partition and matches.",
    ("node",),
    multiprocess_mode="livemax",
)
GRID_NODE_LAG = Gauge(
    "rillbase_grid_node_lag_seconds",
    "Age of the stream entry that a node handled last.",
    ("node",),
    multiprocess_mode="livemax",
)
GRID_NODE_QUERIES = Gauge(
    "rillbase_grid_node_queries",
    "Queries that a node matches.",
    ("node",),
    multiprocess_mode="livemax",
)
GRID_NODE_BYTES = Gauge(
    "rillbase_grid_node_bytes",
    "Memory of a node, by use (index, images).",
    ("node", "part"),
    multiprocess_mode="livemax",
)
GRID_NODE_WORK = Gauge(
    "rillbase_grid_node_work",
    "Counters of a node's process since its start, by kind (entries, notifications, matched, "
    "candidates, verified, residual, rebuilds, quarantined, panics, cpu_seconds).",
    ("node", "kind"),
    multiprocess_mode="livemax",
)
GRID_NODE_RESTARTS = Counter(
    "rillbase_grid_node_restarts_total",
    "Grid nodes that exited and were restarted.",
    ("node",),
)
GRID_QUERIES_EXPIRED = Counter(
    "rillbase_grid_queries_expired_total",
    "Queries whose time to live ended because no server renewed them.",
)

SUBSCRIPTIONS = Gauge(
    "rillbase_subscriptions",
    "Subscriptions of clients, by state: starting, live, stale.",
    ("state",),
    multiprocess_mode="livesum",
)
LIVE_TRACE_BYTES = Gauge(
    "rillbase_live_trace_bytes",
    "Memory in which the server process keeps recent deliveries for *Why?*.",
    multiprocess_mode="livesum",
)
LIVE_BYTES = Gauge(
    "rillbase_live_bytes",
    "Memory of live queries in the server process, by use: `results`, `waiting` changes, "
    "`outboxes` of clients, and the `budget`.",
    ("part",),
    multiprocess_mode="livesum",
)
LIVE_RELIEFS = Gauge(
    "rillbase_live_reliefs",
    "Measures against a lack of memory: results evicted (`evicted`), clients disconnected "
    "(`disconnected`), queries rejected (`refused`).",
    ("kind",),
    multiprocess_mode="livesum",
)
REGISTRATIONS = Counter(
    "rillbase_registrations_total",
    "Registrations of queries with the grid, by outcome: `registered`, `refused`, or `unavailable` "
    "while a server was.",
    ("outcome",),
)


@lru_cache(maxsize=4096)
def _http_histogram(route: str, method: str, status: str) -> Histogram:
    # Looking a child up by labels takes a lock and builds a tuple; the cache halves the cost.
    return HTTP_REQUESTS.labels(route, method, status)


def http_answered(route: str, method: str, status: int, seconds: float) -> None:
    """Record the duration of a request."""
    _http_histogram(
        route or UNMATCHED_ROUTE,
        method if method in METHODS else "other",
        f"{status // 100}xx",
    ).observe(seconds)


@lru_cache(maxsize=256)
def _decision_counter(policy: str, outcome: str, counted: str) -> Counter:
    return LIMIT_DECISIONS.labels(policy, outcome, counted)


def limit_decided(policy: str, *, allowed: bool, shared: bool) -> None:
    """Count one decision of the rate limits."""
    _decision_counter(
        policy, "allowed" if allowed else "refused", "shared" if shared else "local"
    ).inc()


class PoolSampler:
    """Copies the database pools' own statistics into gauges, at most every few seconds.

    In multi-process mode a gauge is only seen by others once it has been set, so each worker
    samples as it serves requests and not only when it happens to be scraped.
    """

    def __init__(self, interval_s: float = POOL_SAMPLE_INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._due = 0.0

    def sample(self, *, force: bool = False) -> None:
        now = time.monotonic()
        if now < self._due and not force:
            return
        self._due = now + self._interval_s
        for alias, stats in _pool_statistics().items():
            size, idle = stats.get("pool_size", 0), stats.get("pool_available", 0)
            connections = DATABASE_POOL_CONNECTIONS
            connections.labels(alias, "idle").set(idle)
            connections.labels(alias, "used").set(max(0, size - idle))
            connections.labels(alias, "limit").set(stats.get("pool_max", 0))
            DATABASE_POOL_WAITING.labels(alias).set(stats.get("requests_waiting", 0))
            DATABASE_POOL_WAITED.labels(alias).set(stats.get("requests_wait_ms", 0) / 1000)


def _pool_statistics() -> dict[str, Mapping[str, int]]:
    from django.db import connections  # noqa: PLC0415 - metrics also serve processes without Django

    statistics: dict[str, Mapping[str, int]] = {}
    for alias in connections:
        pool = getattr(connections[alias], "pool", None)
        if pool is not None:
            statistics[alias] = pool.get_stats()
    return statistics


POOLS = PoolSampler()


def render() -> bytes:
    """Return all metrics in Prometheus' text format, those of other workers included."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if folder is None:
        return generate_latest(REGISTRY)
    _drop_gauges_of_dead_workers(Path(folder))
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def _drop_gauges_of_dead_workers(folder: Path) -> None:
    for file in folder.glob("gauge_live*.db"):
        match = re.search(r"_(\d+)\.db\Z", file.name)
        if match and not Path("/proc", match[1]).exists():
            mark_process_dead(int(match[1]), str(folder))  # type: ignore[no-untyped-call]
