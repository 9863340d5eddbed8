"""Nodes as jobs of a Spark cluster: each is the only task of a separate job.

A failure of an endless task would count towards its job's retries, so a node's job ends with its
first failure and the supervisor submits it again. Speculation is off: two tasks of one node would
only wait for each other's lease. Spark places nodes on machines and replaces lost executors, on a
laptop as well as on a cluster.
"""

from __future__ import annotations

import os
from itertools import count

from pyspark import InheritableThread, SparkContext

from foundation.environment import environment
from foundation.spark import SparkApplication
from realtime.grid.keeper import cause_of
from realtime.grid.launcher import new_holder
from realtime.grid.layout import NodeSpec
from realtime.grid.node import run_as_task

#: Variables that a node needs on machines that do not inherit this process's environment.
_PASSED_ON = ("RILLBASE_", "DATABASE_", "REDIS_URL", "EVENTS_URL", "STORAGE_URL", "PYTHONPATH")
LOCAL_SLOTS = 64
_numbers = count(1)


class SparkTask:
    """A job with one task, submitted by a thread that waits for its end."""

    def __init__(self, context: SparkContext, node: NodeSpec) -> None:
        self._context = context
        self.holder = new_holder()
        self._group = f"{node.name}#{next(_numbers)}"
        self._reason: str | None = None
        self._thread = InheritableThread(target=self._submit, args=(node,), daemon=True)
        self._thread.start()

    def ended(self) -> str | None:
        return self._reason

    def stop(self) -> None:
        self._context.cancelJobGroup(self._group)

    def kill(self) -> None:
        # Spark kills a Python worker that does not end within two seconds after this.
        self.stop()

    def _submit(self, node: NodeSpec) -> None:
        # The gateway raises different errors depending on when the JVM dies.
        try:
            self._context.setJobGroup(self._group, node.name, interruptOnCancel=True)
            self._context.parallelize([(node.to_json(), self.holder)], 1).foreach(run_as_task)
            self._reason = "its job ended"
        except Exception as error:  # noqa: BLE001 -- the supervisor logs it and continues
            self._reason = f"its job failed: {cause_of(error)}"


class SparkLauncher:
    """One Spark application, whose driver is this process."""

    def __init__(self) -> None:
        self._application: SparkApplication | None = None
        self._failed = False

    def open(self, slots: int) -> int:
        settings = environment()
        if not settings.rillbase_grid_master:
            # Slots on this machine are threads that wait: a grid may grow without another JVM.
            slots = max(slots, LOCAL_SLOTS)
        master = settings.rillbase_grid_master or f"local[{slots}]"
        self._application, self._failed = self._start_application(master, slots), False
        return slots

    def _start_application(self, master: str, slots: int) -> SparkApplication:
        """Start the driver. Its first failed attempt is logged in full, and further ones are not:
        Spark describes each in hundreds of lines, of which the supervisor reports the cause.
        """
        try:
            return SparkApplication(
                "rillbase-grid",
                master,
                secret=environment().rillbase_spark_secret.get_secret_value(),
                settings=_settings(master, slots),
                logs_start=not self._failed,
            )
        except Exception:
            self._failed = True
            raise

    def room(self) -> int:
        return 0 if self._application is None else self._application.slots

    def start(self, node: NodeSpec) -> SparkTask:
        if self._application is None:
            raise RuntimeError("the application is not running")
        return SparkTask(self._application.context, node)

    def lost(self) -> str | None:
        """Return why the driver is unusable: its JVM exited, or gave up its cluster."""
        if self._application is None:
            return None
        try:
            stopped = self._application.stopped
        except Exception as error:  # noqa: BLE001 -- see SparkTask
            return f"Spark's driver has exited: {type(error).__name__}"
        return "Spark has ended the application" if stopped else None

    def close(self) -> None:
        application, self._application = self._application, None
        if application is not None:
            application.close()


def _settings(master: str, slots: int) -> dict[str, str]:
    if master.startswith("k8s://"):
        # Executors' memory, number and image are in spark-defaults.conf, and the variables of their
        # nodes in the pod template: Spark's own settings would reveal secrets to everyone who may
        # read pods.
        return {"spark.python.worker.reuse": "false"}
    settings = {"spark.python.worker.reuse": "false", "spark.executor.memory": "512m"}
    if not master.startswith("local"):
        settings["spark.cores.max"] = str(slots)
        for name, value in os.environ.items():
            if name.startswith(_PASSED_ON):
                settings[f"spark.executorEnv.{name}"] = value
    return settings
