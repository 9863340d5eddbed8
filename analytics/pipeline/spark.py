"""Runs tasks as jobs of one Spark application.

It is started by the first task and stopped when there is nothing to do: an installation without
uploads has no application. Stages have separate pools with equal shares, so merging never blocks
the sorting of new uploads.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from tempfile import gettempdir
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import SparkContext

from analytics.pipeline.tasks import run_task
from analytics.pipeline.workers import AT_ONCE, WorkersLost
from foundation.environment import environment
from foundation.spark import SparkApplication

logger = logging.getLogger(__name__)

#: A job that completes no task for this long is stuck. Tasks take seconds to minutes.
TASK_TIMEOUT_S = 1800.0
#: A driver that does not respond for this long is stuck.
DRIVER_TIMEOUT_S = 15.0
WATCH_S = 5.0


class SparkWorkers:
    """The application, whose driver is this process."""

    def __init__(self) -> None:
        self._application: SparkApplication | None = None
        #: Running jobs.
        self._jobs = 0
        self._lock = threading.Lock()

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        application = self._acquire()
        context: SparkContext = application.context
        group = group or uuid4().hex
        try:
            with _kill_if_stuck(application, group):
                # Properties are per thread, and each step has its own thread.
                context.setLocalProperty("spark.scheduler.pool", pool)
                context.setLocalProperty("spark.jobGroup.id", group)
                results: list[str] = context.parallelize(tasks, len(tasks)).map(run_task).collect()
        except (Py4JError, OSError) as error:
            if _is_lost(application):
                raise WorkersLost("Spark's driver has exited") from error
            raise
        finally:
            with self._lock:
                self._jobs -= 1
        return results

    def cancel(self, group: str) -> None:
        with self._lock:
            application = self._application
        if application is None:
            return
        # Without the lock: the call blocks while the driver is stuck. Without a driver, the job has
        # ended anyway.
        with suppress(Py4JError, OSError):
            application.context.cancelJobGroup(group)

    def release(self) -> None:
        with self._lock:
            if self._jobs == 0 and self._application is not None:
                self._application.close()
                self._application = None

    def close(self) -> None:
        application, self._application = self._application, None
        if application is not None:
            application.close()

    def _acquire(self) -> SparkApplication:
        """Count a job, and return the application. The first job starts it."""
        with self._lock:
            if self._application is None:
                self._application = _start()
            self._jobs += 1
            return self._application


@contextmanager
def _kill_if_stuck(application: SparkApplication, group: str) -> Iterator[None]:
    """Run the block; kill the application if its job makes no progress, which fails the block.

    Spark replaces stuck executors, but not the stuck Python processes that they wait for.
    """
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(application, group, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()


def _watch(application: SparkApplication, group: str, ended: threading.Event) -> None:
    completed, since_s = 0, time.monotonic()
    with ThreadPoolExecutor(1) as threads:
        while not ended.wait(min(WATCH_S, TASK_TIMEOUT_S)):
            try:
                # A stuck driver never responds: the call ends when the driver is killed.
                count = threads.submit(_count_completed, application, group).result(
                    DRIVER_TIMEOUT_S
                )
            except TimeoutError:
                if ended.is_set():
                    return
                logger.warning("the driver hangs: no response within %.0f s", DRIVER_TIMEOUT_S)
                application.kill()
                return
            except (Py4JError, OSError, AttributeError):
                return  # The driver has exited or was closed; the job fails too.
            if count != completed:
                completed, since_s = count, time.monotonic()
            elif time.monotonic() - since_s > TASK_TIMEOUT_S and not ended.is_set():
                logger.error("a job hangs: no task ended within %.0f s", TASK_TIMEOUT_S)
                application.kill()
                return


def _count_completed(application: SparkApplication, group: str) -> int:
    """Return how many tasks of a job have ended."""
    tracker = application.context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    return sum(stage.numCompletedTasks for stage in stages if stage)


def _is_lost(application: SparkApplication) -> bool:
    try:
        return application.stopped
    except (Py4JError, OSError):
        return True


def _start() -> SparkApplication:
    settings = environment()
    master = settings.rillbase_analytics_master or f"local[{AT_ONCE}]"
    properties = {"spark.scheduler.mode": "FAIR"}
    if not master.startswith(("k8s:", "local")):
        # Pods have a separate volume for it, which cannot be inside the scratch directory. On this
        # machine, the application has a folder for all of its files.
        properties["spark.local.dir"] = gettempdir()
    secret = settings.rillbase_spark_secret.get_secret_value()
    return SparkApplication("rillbase-analytics", master, secret=secret, settings=properties)
