"""Starting Spark applications that only their own processes can talk to.

By default, Spark accepts commands and serialized Java objects from any client that connects. Here,
every connection is authenticated by a secret and encrypted. On this machine Spark generates the
secret itself, once per application, and it never leaves the driver's memory.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

_REPOSITORY = Path(__file__).resolve().parents[1]
LOOPBACK = "127.0.0.1"
#: The JVM only hands tasks out: it needs neither its best compiler nor threads for its garbage, nor
#: a file of counters, which a killed one would leave behind.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
_LOG_LEVEL = "WARN"
_SECRET = "spark.authenticate.secret"
_PRIVATE_CONNECTIONS = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    # Python workers fork for each TCP connection before it has named the secret. Only the account
    # of the process can connect to a socket in the file system.
    "spark.python.unix.domain.socket.enabled": "true",
}
_COMMON = {
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Names of settings whose values appear in no log.
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|pepper|_url",
}
#: An unresponsive executor is replaced after this time; Spark's default is two minutes.
_CLUSTER_TIMEOUTS = {
    "spark.executor.heartbeatInterval": "3s",
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.storage.blockManagerTimeoutIntervalMs": "5s",
}
#: The path of a socket has at most 107 bytes, of which its name takes 43.
_LONGEST_SOCKET_FOLDER = 60
STOP_S = 5.0
DRIVER_MEMORY_MIB = 512


class MissingSecret(Exception):
    """A standalone cluster needs the secret that its master and workers have."""


class DriverStartFailure(Exception):
    """The driver cannot start; the text is what its JVM has reported."""


def private_connections(master: str, secret: str, socket_folder: str) -> dict[str, str]:
    """Return the settings by which a driver and its executors accept only each other.

    On Kubernetes the secret is a file that `spark-defaults.conf` names, so that it is in no pod's
    description.
    """
    options = dict(_PRIVATE_CONNECTIONS)
    if _is_local(master):
        options |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        if len(socket_folder) > _LONGEST_SOCKET_FOLDER:
            # Over TCP, they require a secret as well.
            del options["spark.python.unix.domain.socket.enabled"]
        else:
            options["spark.python.unix.domain.socket.dir"] = socket_folder
        return options
    if master.startswith("spark://"):
        if not secret:
            raise MissingSecret("RILLBASE_SPARK_SECRET must be set for a standalone Spark cluster")
        options[_SECRET] = secret
    return options | _CLUSTER_TIMEOUTS


class SparkApplication:
    """One Spark application and the JVM that drives it. Starting it takes seconds."""

    def __init__(
        self,
        name: str,
        master: str,
        *,
        secret: str = "",
        settings: Mapping[str, str] | None = None,
        logs_start: bool = True,
        memory_mib: int = DRIVER_MEMORY_MIB,
    ) -> None:
        # It logs each connection to the JVM that is closed.
        logging.getLogger("py4j").setLevel(logging.WARNING)
        for variable, value in _environment().items():
            os.environ.setdefault(variable, value)
        self._local = _is_local(master)
        #: The sockets, libraries and blocks of the JVM, and the files of its Python workers.
        self._folder = tempfile.mkdtemp(prefix="spark-")
        conf = SparkConf(loadDefaults=False).setMaster(master).setAppName(name)
        for key, value in _COMMON.items():
            conf.set(key, value)
        conf.set("spark.driver.memory", f"{memory_mib}m")
        conf.set("spark.log.level", _LOG_LEVEL if logs_start else "OFF")
        conf.set("spark.driver.extraJavaOptions", f'-Djava.io.tmpdir="{self._folder}"')
        # The JVM's command line is visible to every account of the machine and contains what is
        # passed here. Everything else follows over the gateway.
        self._gateway = launch_gateway(conf)  # type: ignore[no-untyped-call]
        try:
            conf = SparkConf(_jvm=self._gateway.jvm)
            options = private_connections(master, secret, self._folder) | dict(settings or {})
            if self._local:
                options["spark.executorEnv.TMPDIR"] = self._folder
            for key, value in options.items():
                conf.set(key, value)
            self.context = SparkContext(gateway=self._gateway, conf=conf)
            self.context.setLogLevel(_LOG_LEVEL)
        except Py4JError as error:
            # The text of a Java exception stays in the JVM until someone asks for it.
            text = _text_of(error)
            self.kill()
            raise DriverStartFailure(text) from None
        except BaseException:
            self.kill()
            raise

    @property
    def stopped(self) -> bool:
        """Whether Spark has ended the application; raise if its JVM has exited."""
        return bool(self.context._jsc.sc().isStopped())

    @property
    def slots(self) -> int:
        """How many tasks can run at once now, on the executors that have registered."""
        executors = int(self.context._jsc.sc().getExecutorMemoryStatus().size())
        # A cluster's driver is counted as well but runs no task.
        return self.context.defaultParallelism if self._local or executors > 1 else 0

    def close(self) -> None:
        """End the application; kill a JVM that does not end."""
        ending = threading.Thread(target=self._stop, daemon=True)
        ending.start()
        ending.join(STOP_S)
        self.kill()

    def _stop(self) -> None:
        # The JVM may be killed meanwhile, which breaks the gateway in many ways.
        with contextlib.suppress(Exception):
            self.context.stop()

    def kill(self) -> None:
        """Kill the JVM, which ends every call that waits for its response."""
        process = self._gateway.proc
        if process is not None:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        # The next application needs a new JVM.
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        shutil.rmtree(self._folder, ignore_errors=True)


def _text_of(error: Py4JError) -> str:
    """Return the text of an error, for which a Java exception asks its JVM."""
    try:
        return str(error)
    except (Py4JError, OSError):
        return f"Spark's JVM has exited: {type(error).__name__}"


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _environment() -> dict[str, str]:
    return {
        "JAVA_TOOL_OPTIONS": _JAVA_OPTIONS,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(_REPOSITORY), str(_REPOSITORY / "platform")]),
        "SPARK_LOCAL_IP": LOOPBACK,
    }
