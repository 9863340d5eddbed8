"""Starts the driver's process, and talks with it. Used by threads of the pipeline's process.

It is started by the first statement, and stopped when there have been none for a while. One that
exits or does not respond is replaced with the next statement.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from foundation.environment import environment
from foundation.json_types import JsonObject

logger = logging.getLogger(__name__)

_ROOT = Path(__file__).resolve().parents[3]
_MODULE = "analytics.sql.spark.driver"
#: What the driver gets of this process's environment: nothing that names or opens anything else.
_VARIABLES = ("PATH", "JAVA_HOME", "SPARK_HOME", "LANG", "LC_ALL")
START_TIMEOUT_S = 120.0
#: Everything else takes precedence, but not as much as over statements on DuckDB, which are short.
NICENESS = 10
#: After a statement's own deadline.
MARGIN_S = 15.0
IDLE_S = 600.0
_STOP_S = 10.0


class DriverFailure(Exception):
    """The driver could not start, has exited, or did not respond."""


class DriverProcess:
    """The driver of this process, running or not."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: _RunningDriver | None = None
        self._used_s = time.monotonic()
        self._statements = 0

    def run(self, name: str, statement: Mapping[str, Any], timeout_s: float) -> JsonObject:
        """Execute a statement, and return its result; raise `DriverFailure` if there is none."""
        with self._lock:
            self._statements += 1
        try:
            driver = self._started()
            try:
                return driver.run(name, statement, timeout_s + MARGIN_S)
            except DriverFailure:
                self._discard(driver)
                raise
        finally:
            with self._lock:
                self._statements -= 1
                self._used_s = time.monotonic()

    def cancel(self, name: str) -> None:
        with self._lock:
            driver = self._running
        if driver is not None:
            driver.cancel(name)

    def stop_if_idle(self) -> None:
        with self._lock:
            is_idle = self._statements == 0 and time.monotonic() - self._used_s > IDLE_S
            driver = self._running if is_idle else None
            if driver is not None:
                self._running = None
        if driver is not None:
            driver.close()

    def close(self) -> None:
        with self._lock:
            driver, self._running = self._running, None
        if driver is not None:
            driver.close()

    def _started(self) -> _RunningDriver:
        with self._lock:
            if self._running is None or not self._running.is_alive:
                if self._running is not None:
                    self._running.close()
                self._running = _RunningDriver()
            return self._running

    def _discard(self, driver: _RunningDriver) -> None:
        with self._lock:
            if self._running is driver:
                self._running = None
        driver.close()


class _RunningDriver:
    """One process, and the replies that are expected of it."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="sql-driver-")
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, str(NICENESS)],
            cwd=_ROOT,
            env=_environment(self._folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._writing = threading.Lock()
        self._start: Future[JsonObject] = Future()
        self._results: dict[str, Future[JsonObject]] = {}
        self._reader = threading.Thread(target=self._read, name="sql-driver", daemon=True)
        self._reader.start()
        settings = environment()
        master = settings.rillbase_analytics_master
        if not master.startswith("spark:"):
            # On Kubernetes too: one pod is the driver of one application with executors.
            master = f"local[{settings.rillbase_sql_threads}]"
        self._send(
            {
                "start": {
                    "master": master,
                    "secret": settings.rillbase_spark_secret.get_secret_value(),
                    "memory_mib": settings.rillbase_sql_spark_memory_mib,
                }
            }
        )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def run(self, name: str, statement: Mapping[str, Any], timeout_s: float) -> JsonObject:
        result = self._results[name] = Future()
        try:
            self._start.result(START_TIMEOUT_S)
            self._send({"run": name, "statement": dict(statement)})
            return result.result(timeout_s)
        except FutureTimeout:
            raise DriverFailure(f"the driver did not respond within {timeout_s:.0f} s") from None
        finally:
            self._results.pop(name, None)

    def cancel(self, name: str) -> None:
        if self._start.done() and self.is_alive:
            self._send({"cancel": name})

    def close(self) -> None:
        """End the process: it stops Spark when its input ends."""
        stdin = cast("IO[str]", self._process.stdin)
        with self._writing, suppress(OSError):
            stdin.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        cast("IO[str]", self._process.stdout).close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _send(self, message: JsonObject) -> None:
        stdin = cast("IO[str]", self._process.stdin)
        try:
            with self._writing:
                stdin.write(json.dumps(message) + "\n")
                stdin.flush()
        except (OSError, ValueError) as error:
            raise DriverFailure("the driver has exited") from error

    def _read(self) -> None:
        for line in cast("IO[str]", self._process.stdout):
            message = json.loads(line)
            if "started" in message:
                self._start.set_result(message)
            elif (future := self._results.get(message["ran"])) is not None:
                future.set_result(message["result"])
        for future in (self._start, *list(self._results.values())):
            if not future.done():
                future.set_exception(DriverFailure("the driver has exited"))


def _environment(folder: str) -> dict[str, str]:
    own = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    path = os.pathsep.join([str(_ROOT), str(_ROOT / "platform")])
    return {**own, "HOME": folder, "TMPDIR": folder, "PYTHONPATH": path}
