"""A hung worker of the pipeline counts as lost, and the next application runs its task."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from analytics.pipeline.workers import WorkersLost


def hang(task: str) -> str:
    """Replace a task by one that hangs."""
    if task == "hangs":
        os.kill(os.getpid(), signal.SIGSTOP)
    return task


@pytest.mark.long
# PySpark leaves its sockets open if the JVM was killed. A pipeline's process ends then.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_job_of_a_hung_worker_is_lost_and_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from analytics.pipeline import spark

    monkeypatch.setattr(spark, "run_task", hang)
    workers = spark.SparkWorkers()
    try:
        assert workers.run("sorted", ["is done"] * 3) == ["is done"] * 3
        # Once the workers are running, tasks finish quickly.
        monkeypatch.setattr(spark, "TASK_TIMEOUT_S", 5.0)
        with pytest.raises(WorkersLost):
            workers.run("sorted", ["is done", "hangs"])
    finally:
        workers.close()
    monkeypatch.setattr(spark, "TASK_TIMEOUT_S", 600.0)
    workers = spark.SparkWorkers()
    try:
        assert workers.run("sorted", ["is done"]) == ["is done"]
    finally:
        workers.close()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_hung_driver_is_killed_and_the_next_application_runs_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from analytics.pipeline import spark

    monkeypatch.setattr(spark, "run_task", str.upper)
    monkeypatch.setattr(spark, "DRIVER_TIMEOUT_S", 2.0)
    monkeypatch.setattr(spark, "WATCH_S", 0.5)
    workers = spark.SparkWorkers()
    try:
        assert workers.run("sorted", ["a"]) == ["A"]
        assert workers._application is not None
        os.kill(workers._application._gateway.proc.pid, signal.SIGSTOP)
        with ThreadPoolExecutor(1) as threads:
            cancelled = threads.submit(workers.cancel, "a job")
            with pytest.raises(WorkersLost):
                workers.run("sorted", ["b"])
            cancelled.result()
    finally:
        workers.close()
    workers = spark.SparkWorkers()
    try:
        assert workers.run("sorted", ["c"]) == ["C"]
    finally:
        workers.close()
