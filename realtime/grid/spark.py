"""Nodes as jobs of a Spark cluster: each is one task of a job of its own.

An endless task that fails would count against its job's retries, so a node's job ends with its
first failure and the supervisor submits it again. Nothing is speculated: two tasks of one node
would only wait for each other's lease. Spark brings what is around the nodes: placement on
machines, other executors for lost ones, the same on a laptop and on a cluster.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from itertools import count
from pathlib import Path

from pyspark import InheritableThread, SparkConf, SparkContext

from foundation.environment import environment
from realtime.grid.layout import Node
from realtime.grid.node import run_as_task

_REPOSITORY = Path(__file__).resolve().parents[2]
#: The JVM only hands tasks out: it needs neither its best compiler nor threads for its garbage.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SETTINGS = {
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "512m",
    "spark.python.worker.reuse": "false",
    "spark.log.level": "WARN",
    # Names of settings whose values appear in no log.
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|pepper|_url",
}
#: What a node needs of this process' environment, on machines that do not inherit it.
_PASSED_ON = ("RILLBASE_", "DATABASE_", "REDIS_URL", "EVENTS_URL", "PYTHONPATH")
LOCAL_SLOTS = 64
_numbers = count(1)


class SparkTask:
    """A job with one task, submitted by a thread that waits for its end."""

    def __init__(self, context: SparkContext, node: Node) -> None:
        self._context = context
        self._group = f"{node.name}#{next(_numbers)}"
        self._reason: str | None = None
        self._thread = InheritableThread(target=self._submit, args=(node,), daemon=True)
        self._thread.start()

    def ended(self) -> str | None:
        return self._reason

    def stop(self) -> None:
        self._context.cancelJobGroup(self._group)

    def _submit(self, node: Node) -> None:
        # The gateway to the JVM breaks in as many ways as there are moments for it to die.
        try:
            self._context.setJobGroup(self._group, node.name, interruptOnCancel=True)
            self._context.parallelize([node.to_json()], 1).foreach(run_as_task)
            self._reason = "its job ended"
        except Exception as failed:  # noqa: BLE001 -- the supervisor logs it and goes on
            self._reason = f"its job failed: {_cause(failed)}"


class SparkLauncher:
    """One Spark application, whose driver is this process."""

    def __init__(self) -> None:
        self._context: SparkContext | None = None

    def open(self, slots: int) -> int:
        # It tells of each connection to the JVM that it closes.
        logging.getLogger("py4j").setLevel(logging.WARNING)
        for name, value in self._environment().items():
            os.environ.setdefault(name, value)
        if not environment().rillbase_grid_master:
            # Slots on this machine are threads that wait: a grid may grow without another JVM.
            slots = max(slots, LOCAL_SLOTS)
        self._context = SparkContext(conf=_configuration(slots))
        return slots

    def start(self, node: Node) -> SparkTask:
        if self._context is None:
            raise RuntimeError("the application is not open")
        return SparkTask(self._context, node)

    def lost(self) -> str | None:
        """A driver whose JVM has gone, or has given up its cluster, is of no more use."""
        context = self._context
        if context is None:
            return None
        try:
            stopped = bool(context._jsc.sc().isStopped())
        except Exception as failed:  # noqa: BLE001 -- see SparkTask
            return f"Spark's driver is gone: {type(failed).__name__}"
        return "Spark has ended the application" if stopped else None

    def close(self) -> None:
        context, self._context = self._context, None
        if context is not None:
            # A JVM that hangs must not keep this process from ending, and ends with it.
            ending = threading.Thread(target=context.stop, daemon=True)
            ending.start()
            ending.join(timeout=5.0)

    @staticmethod
    def _environment() -> dict[str, str]:
        paths = os.pathsep.join([str(_REPOSITORY), str(_REPOSITORY / "platform")])
        return {
            "JAVA_TOOL_OPTIONS": _JAVA_OPTIONS,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": paths,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }


def _cause(failed: Exception) -> str:
    """Return the line of a failure, as long as a stack of Java's, that says what happened."""
    lines = str(failed).splitlines() or [type(failed).__name__]
    return next((line for line in lines if "Exception: " in line), lines[0]).strip()[:300]


def _configuration(slots: int) -> SparkConf:
    master = environment().rillbase_grid_master or f"local[{slots}]"
    conf = SparkConf().setMaster(master).setAppName("rillbase-grid")
    for name, value in _SETTINGS.items():
        conf.set(name, value)
    if master.startswith("k8s://"):
        # Executors' memory, number and image are in spark-defaults.conf, and what their nodes need
        # of this process' environment in the pod that they are made from: Spark's own settings
        # would show secrets to all who may see pods.
        return conf
    conf.set("spark.executor.memory", "512m")
    if not master.startswith("local"):
        conf.set("spark.cores.max", str(slots))
        for name, value in os.environ.items():
            if name.startswith(_PASSED_ON):
                conf.set(f"spark.executorEnv.{name}", value)
    return conf
