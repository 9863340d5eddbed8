"""Tasks as jobs of one Spark application.

It is started by the first task and rests where there is nothing to do: an installation without
uploads has no application for them. Stages have
pools of their own with equal shares, so that merging never keeps new uploads from being sorted.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext

from analytics.pipeline.tasks import run_task
from analytics.pipeline.workers import AT_ONCE, WorkersLost
from foundation.environment import environment

_REPOSITORY = Path(__file__).resolve().parents[2]
#: The JVM only hands tasks out.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SETTINGS = {
    "spark.scheduler.mode": "FAIR",
    "spark.speculation": "false",
    # Tasks that fail are tried again by the coordinator, which also says why they do.
    "spark.task.maxFailures": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "512m",
    "spark.log.level": "WARN",
    # Names of settings whose values appear in no log.
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|pepper|_url",
}


class SparkWorkers:
    """The application, whose driver is this process."""

    def __init__(self) -> None:
        self._context: SparkContext | None = None
        #: Jobs under way.
        self._jobs = 0
        self._lock = threading.Lock()

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        context = self._begun()
        try:
            # Properties are of the thread, and each step has one of its own.
            context.setLocalProperty("spark.scheduler.pool", pool)
            context.setLocalProperty("spark.jobGroup.id", group)
            found: list[str] = context.parallelize(tasks, len(tasks)).map(run_task).collect()
        except (Py4JError, OSError) as failed:
            if self._is_lost(context):
                raise WorkersLost("Spark's driver is gone") from failed
            raise
        finally:
            with self._lock:
                self._jobs -= 1
        return found

    def cancel(self, group: str) -> None:
        with self._lock:
            if self._context is not None:
                self._context.cancelJobGroup(group)

    def rest(self) -> None:
        with self._lock:
            if self._jobs == 0 and self._context is not None:
                self._context.stop()
                self._context = None

    def close(self) -> None:
        context, self._context = self._context, None
        if context is not None:
            # A JVM that hangs must not keep this process from ending, and ends with it.
            ending = threading.Thread(target=context.stop, daemon=True)
            ending.start()
            ending.join(timeout=5.0)

    def _begun(self) -> SparkContext:
        """Count a job, and return the application, which the first one starts."""
        with self._lock:
            if self._context is None:
                # It tells of each connection to the JVM that it closes.
                logging.getLogger("py4j").setLevel(logging.WARNING)
                for name, value in _environment().items():
                    os.environ.setdefault(name, value)
                self._context = SparkContext(conf=_configuration())
            self._jobs += 1
            return self._context

    @staticmethod
    def _is_lost(context: SparkContext) -> bool:
        try:
            return bool(context._jsc.sc().isStopped())
        except (Py4JNetworkError, Py4JError, OSError):
            return True


def _environment() -> dict[str, str]:
    return {
        "JAVA_TOOL_OPTIONS": _JAVA_OPTIONS,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(_REPOSITORY), str(_REPOSITORY / "platform")]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def _configuration() -> SparkConf:
    master = environment().rillbase_analytics_master or f"local[{AT_ONCE}]"
    conf = SparkConf().setMaster(master).setAppName("rillbase-analytics")
    for name, value in _SETTINGS.items():
        conf.set(name, value)
    if not master.startswith("k8s:"):
        # Pods get a volume for it, which cannot lie where they have their own scratch space.
        conf.set("spark.local.dir", gettempdir())
    return conf
