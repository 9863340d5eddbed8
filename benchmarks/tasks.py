"""Background tasks: outbox → relay → broker → worker.

    python -m benchmarks.tasks [--tasks 5000] [--processes 2] [--quick]

Separate servers, beat with the relay, and one Celery worker, as the launcher starts them. The tasks
are written to the outbox in one transaction, then everything is measured until each has ended. Two
kinds are measured: tasks that succeed with next to no work of their own, and tasks that fail, until
each has been scheduled for another attempt. CPU time is that of the worker and its processes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
import psycopg

from benchmarks.support.installation import Installation, installation, service
from benchmarks.support.report import Report

TASK = "foundation.tasks.record_end"
_SUCCEEDS = '{"task_id": "00000000-0000-0000-0000-000000000000", "attempt": 1}'
#: An argument is missing.
_FAILS = "{}"
START_DEADLINE_S = 60.0
RUN_DEADLINE_S = 600.0
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """The duration and the worker's CPU time of a number of attempts."""

    attempts: int
    seconds: float
    cpu_s: float


def main() -> None:
    """Measure both kinds of task on one installation."""
    arguments = _arguments()
    report = Report("tasks", vars(arguments))
    with (
        installation() as place,
        service(place, "beat", {}),
        _worker(place, arguments.processes) as worker,
        psycopg.connect(place.environment["DATABASE_URL"], autocommit=True) as database,
    ):
        _measure(database, worker, _SUCCEEDS, arguments.tasks // 10)  # imports and connections
        succeeded = _measure(database, worker, _SUCCEEDS, arguments.tasks)
        failed = _measure(database, worker, _FAILS, arguments.tasks)
    for name, figures in (("succeeding", succeeded), ("failing", failed)):
        rate, cpu_ms = figures.attempts / figures.seconds, figures.cpu_s / figures.attempts * 1000
        report.add(f"{name}_per_s", rate, "/s", f"{name} attempts, {figures.attempts} in all")
        report.add(f"{name}_cpu_ms", cpu_ms, "ms", "CPU time of the worker per attempt")
    report.finish()


@contextmanager
def _worker(place: Installation, processes: int) -> Iterator[psutil.Process]:
    ready = place.directory / "worker.ready"
    argv = [sys.executable, "-m", "rillbase_server.launcher.celery_process", str(ready), "worker"]
    argv += ["--pool", "prefork", "--concurrency", str(processes)]
    argv += ["--without-gossip", "--without-mingle"]
    log = place.directory / "worker.log"
    with log.open("wb") as output:
        child = subprocess.Popen(argv, env=place.environment, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_DEADLINE_S
        while not ready.exists():
            if time.monotonic() > deadline or child.poll() is not None:
                raise RuntimeError(f"the worker did not start:\n{log.read_text()[-2000:]}")
            time.sleep(POLL_S)
        yield psutil.Process(child.pid)
    finally:
        child.terminate()
        child.wait(START_DEADLINE_S)


def _measure(
    database: psycopg.Connection, worker: psutil.Process, arguments: str, tasks: int
) -> TaskFigures:
    """Run the tasks once each; the rows of those that failed are removed afterwards."""
    cpu_before_s, began = _cpu_s(worker), time.monotonic()
    database.execute(
        "INSERT INTO foundation_outboxtask (id, name, arguments, queue, due_at, created_at)"
        " SELECT gen_random_uuid(), %s, %s, 'default', now(), now() FROM generate_series(1, %s)",
        (TASK, arguments, tasks),
    )
    while _count(database, "attempt = 1"):
        if time.monotonic() - began > RUN_DEADLINE_S:
            raise RuntimeError("the tasks did not end in time")
        time.sleep(POLL_S)
    seconds, cpu_s = time.monotonic() - began, _cpu_s(worker) - cpu_before_s
    repeated = _count(database, "attempt > 1", "coalesce(sum(attempt - 2), 0)")
    database.execute("DELETE FROM foundation_outboxtask WHERE name = %s", (TASK,))
    return TaskFigures(tasks + repeated, seconds, cpu_s)


def _count(database: psycopg.Connection, condition: str, what: str = "count(*)") -> int:
    query = f"SELECT {what} FROM foundation_outboxtask WHERE name = %s AND {condition}"
    row = database.execute(query, (TASK,)).fetchone()
    assert row is not None
    return int(row[0])


def _cpu_s(worker: psutil.Process) -> float:
    processes = [worker, *worker.children(recursive=True)]
    times = [process.cpu_times() for process in processes]
    return float(sum(part.user + part.system for part in times))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=5_000, help="of each kind")
    parser.add_argument("--processes", type=int, default=2, help="of the worker")
    parser.add_argument("--quick", action="store_true", help="1,000 tasks of each kind")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.tasks = min(arguments.tasks, 1_000)
    return arguments


if __name__ == "__main__":
    main()
