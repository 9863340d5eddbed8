"""The real Celery application with a few tasks for tests.

Started as `celery -A tests.task_bench worker` by `tests.celery_worker`. Tasks record their effects
in files, which their arguments name.
"""

# ruff: noqa: I001 -- the application comes first: it sets up Django

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from rillbase_server.celery import app

from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import worker_ready

from django.db import connections

from foundation import request_context
from foundation.tasks import failures, task
from foundation.tasks.definition import PERIODIC
from foundation.tasks.retry_policy import RetryPolicy

_IMPATIENT = RetryPolicy(max_retries=2, retry_backoff=0)

failures.POSTPONED_S = 0.05

app.conf.broker_transport_options = {
    **app.conf.broker_transport_options,
    "visibility_timeout": int(os.environ["BENCH_VISIBILITY_TIMEOUT_S"]),
    "unacked_restore_interval": 1,
}


def _announce(**_: object) -> None:
    Path(os.environ["BENCH_READY_FILE"]).touch()


worker_ready.connect(_announce, weak=False)


def _note(file: str, line: str) -> int:
    """Append a line; return the number of lines."""
    with Path(file).open("a") as notes:
        notes.write(line + "\n")
    return len(Path(file).read_text().splitlines())


@task(name="bench.note", policy=_IMPATIENT)
def note(*, file: str, text: str) -> None:
    _note(file, text)


@task(name="bench.tell_context", policy=_IMPATIENT)
def tell_context(*, file: str) -> None:
    _note(file, f"{request_context.request_id.get()} {request_context.tenant_id.get()}")


@task(name="bench.fail", policy=_IMPATIENT)
def fail(*, file: str, times: int) -> None:
    if _note(file, "tried") <= times:
        raise RuntimeError("it went wrong")


@task(name="bench.fill", policy=_IMPATIENT)
def fill(*, file: str, times: int) -> None:
    """Fail several times because the database's disk is full, more often than a task is retried."""
    if _note(file, "tried") <= times:
        with connections["default"].cursor() as cursor:
            cursor.execute("DO $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$")


@task(name="bench.die", policy=_IMPATIENT)
def die(*, file: str, times: int) -> None:
    """Die as by the kernel's out-of-memory killer."""
    if _note(file, "begun") <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    _note(file, "finished")


@task(name="bench.hang", policy=_IMPATIENT, soft_limit_s=0.5, hard_limit_s=1)
def hang(*, file: str, times: int) -> None:
    """Exceed the time limit, and ignore the soft limit."""
    if _note(file, "begun") > times:
        return
    while True:
        try:
            time.sleep(60)
        except SoftTimeLimitExceeded:
            _note(file + ".soft", "interrupted")


@task(name="bench.linger", policy=_IMPATIENT)
def linger(*, file: str, gate: str) -> None:
    """Run until the gate opens."""
    _note(file, "begun")
    while not Path(gate).exists():
        time.sleep(0.01)
    _note(file, "finished")


@task(name="bench.fail_on_schedule", policy=PERIODIC)
def fail_on_schedule() -> None:
    raise RuntimeError("the scheduled task failed")
