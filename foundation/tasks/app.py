"""The Celery application, and the transport of tasks.

The *visibility timeout* is how long the broker waits for an acknowledgement before it gives a
message to another worker. If it is too short, a task that still runs is started a second time; if
it is too long, the task of a dead worker machine is delayed for as long. A worker holds as many
messages as it has processes (prefetch 1, late acknowledgement), so a message is held for at most
the hard time limit; the timeout is two and a half times that. Nothing is ever delayed inside the
broker: delays live in the outbox, so none can outlast the timeout and be delivered over and over.
"""

from __future__ import annotations

from celery import Celery
from kombu.entity import Queue

from foundation.environment import environment
from foundation.tasks.queues import DEFAULT, QUEUES

SOFT_LIMIT_S = 90
HARD_LIMIT_S = 120
VISIBILITY_TIMEOUT_S = 300
#: How often workers look for messages whose visibility timeout is over.
RESTORE_INTERVAL_S = 10
SOCKET_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 2.0

# Celery's own Django integration would close and reopen the connection pools around each task;
# `worker_process` does what is needed instead.
app = Celery("rillbase", broker=environment().broker, fixups=set())
app.conf.update(
    # No result backend: the effects of a task are in the database, and results would be lost with
    # the broker anyway.
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    enable_utc=True,
    timezone="UTC",
    task_queues=[Queue(name) for name in QUEUES],  # type: ignore[no-untyped-call]
    task_default_queue=DEFAULT,
    task_create_missing_queues=False,
    # A message is acknowledged when its task is done. A task whose process died or whose time ran
    # out is first passed to `lost.record`, which counts the attempt; if that fails, it is rejected
    # and delivered again.
    task_acks_late=True,
    task_acks_on_failure_or_timeout=True,
    task_acks_on_timeout=False,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    task_soft_time_limit=SOFT_LIMIT_S,
    task_time_limit=HARD_LIMIT_S,
    # Processes are replaced now and then, which bounds memory leaks of libraries.
    worker_max_tasks_per_child=10_000,
    worker_max_memory_per_child=400_000,  # KiB
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    # A task that runs while the broker is lost completes; its message is delivered again and has no
    # effect.
    worker_cancel_long_running_tasks_on_connection_loss=False,
    broker_connection_retry=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "visibility_timeout": VISIBILITY_TIMEOUT_S,
        "unacked_restore_interval": RESTORE_INTERVAL_S,
        "unacked_restore_throttle": 1,
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_keepalive": True,
        "health_check_interval": 10,
    },
)
