"""The complete Celery application: `celery -A rillbase_server.celery worker`.

`foundation.tasks.app` transports tasks. This module lists the modules with tasks and the periodic
tasks, and sets up Celery's processes. The launcher announces that a worker is ready
(`launcher/celery_process.py`), and `processes/beat.py` runs the schedule.
"""

# ruff: noqa: E402 -- Django must be set up before anything with models is imported

from __future__ import annotations

import logging
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rillbase_server.settings")

import django

django.setup()

from celery.schedules import crontab
from celery.signals import (
    setup_logging,
    task_postrun,
    worker_process_init,
    worker_process_shutdown,
)
from django.db import connections

from foundation import tracing
from foundation.environment import environment
from foundation.logs import set_up_logging
from foundation.task_tracing import instrument_celery
from foundation.tasks.app import app
from foundation.tasks.queues import queue_of
from tenants import error_log, usage

__all__ = ["app"]

#: Modules that define tasks.
TASK_MODULES = (
    "foundation.tasks.lost_tasks",
    "aggregates.definitions.node_sync",
    "analytics.definitions.removal",
    "documents.collections.backfill",
    "documents.collections.expiry",
    "documents.collections.mover",
    "documents.collections.removal",
    "documents.collections.storage_usage",
    "documents.collections.technique_advisor",
    "documents.collections.tombstones",
    "documents.collections.lost_work",
    "realtime.clusters.kubernetes.tasks",
    "realtime.registration.fetches",
    "realtime.registration.renewals",
    "storage_engine.topics.deliveries",
    "storage_engine.topics.removal",
    "tenants.actions.addresses",
    "tenants.mail.tasks",
    "tenants.webhooks.tasks",
    "tenants.sweeps.deleted_tenants",
    "tenants.sweeps.expiry",
    "tenants.sweeps.request_log",
    "tenants.sweeps.retention",
    "tenants.sweeps.usage_roll_up",
)

MINUTE_S = 60.0
HOUR_S = 60 * MINUTE_S

#: Periodic sweeps: task and seconds between runs. Retention runs at night.
INTERVALS_S = {
    "documents.collections.expiry": 1.0,
    "storage_engine.topics.deliver": 1.0,
    "documents.collections.unfinished": MINUTE_S,
    "documents.collections.tombstones": 5 * MINUTE_S,
    "documents.collections.storage_usage": 10 * MINUTE_S,
    "documents.collections.techniques": 5 * MINUTE_S,
    "tenants.sweeps.usage_roll_up": 10.0,
    "tenants.sweeps.expired_api_keys": MINUTE_S,
    "tenants.sweeps.old_requests": MINUTE_S,
    "tenants.sweeps.forgotten_deliveries": 5 * MINUTE_S,
    "tenants.sweeps.deleted_tenants": 10 * MINUTE_S,
    "tenants.sweeps.expired_invitations": 10 * MINUTE_S,
    "tenants.sweeps.expired_sign_ins": 10 * MINUTE_S,
    "tenants.sweeps.old_errors": 10 * MINUTE_S,
    "tenants.sweeps.old_usage_minutes": 10 * MINUTE_S,
    "tenants.sweeps.old_idempotency_records": 10 * MINUTE_S,
}
#: Only if tenants may have dedicated clusters. The first one also wakes sleeping clusters.
CLUSTER_INTERVALS_S = {
    "realtime.clusters.sweep": 2.0,
    "realtime.clusters.orphans": 5 * MINUTE_S,
}
NIGHTLY = {
    "tenants.sweeps.expired_tokens": crontab(hour=3, minute=10),
    "tenants.sweeps.old_audit_entries": crontab(hour=3, minute=20),
    "tenants.sweeps.old_deliveries": crontab(hour=3, minute=30),
}


def beat_schedule() -> dict[str, dict[str, object]]:
    """Return the periodic tasks. A run expires when the next one is due: after an outage, each
    sweep runs once rather than as often as it was missed.
    """
    intervals_s = (
        INTERVALS_S
        if environment().rillbase_clusters == "off"
        else INTERVALS_S | CLUSTER_INTERVALS_S
    )
    periodic = {
        name: {
            "task": name,
            "schedule": interval_s,
            "options": {"expires": interval_s, "queue": queue_of(name)},
        }
        for name, interval_s in intervals_s.items()
    }
    nightly = {
        name: {"task": name, "schedule": moment, "options": {"expires": 12 * HOUR_S}}
        for name, moment in NIGHTLY.items()
    }
    return {**periodic, **nightly}


app.conf.update(
    imports=TASK_MODULES,
    beat_schedule=beat_schedule(),
    beat_schedule_filename=str(environment().rillbase_data_dir / "run" / "beat-schedule"),
    # Beat wakes up this often even if nothing is due, so a clock change does not stall it.
    beat_max_loop_interval=30,
)


def quiet_celery() -> None:
    """Remove log lines without information, and those with personal data."""
    # These log tasks' arguments, which may contain email addresses. Each task logs its own end.
    for name in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # This logs a line for each due task, which is every second.
    logging.getLogger("celery.beat").setLevel(logging.WARNING)


def _set_up_logging(**_: object) -> None:
    settings = environment()
    set_up_logging(settings.rillbase_log_format, settings.rillbase_log_level)
    quiet_celery()


def _start_worker_process(**_: object) -> None:
    """Start what must not be inherited over a fork. The main process does not use the database."""
    traces = tracing.start(environment().otel_exporter_otlp_endpoint, "rillbase-worker")
    if traces is not None:
        tracing.instrument_database()
        instrument_celery()


def _release_connections(**_: object) -> None:
    """Return pooled connections: a process holds none between tasks."""
    connections.close_all()


def _stop_worker_process(**_: object) -> None:
    usage.stop()
    error_log.stop()


setup_logging.connect(_set_up_logging, weak=False)
worker_process_init.connect(_start_worker_process, weak=False)
task_postrun.connect(_release_connections, weak=False)
worker_process_shutdown.connect(_stop_worker_process, weak=False)
