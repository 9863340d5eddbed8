"""Checks before a start, each with a message and an exit code.

``up`` and ``doctor`` use the same checks.
"""

import errno
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from . import postgres, storage_node, valkey
from .account import Account, closed_ancestor
from .options import INSTALLED, UpOptions
from .ports import bind_problem, holder
from .problems import ExitCode, LauncherProblem

CONNECT_TIMEOUT_S = 3.0
JAVA_TIMEOUT_S = 10.0
JAVA_NEEDED = 17
EXTERNAL_SERVERS = ("DATABASE_URL", "REDIS_URL", "STORAGE_URL")
DEFAULT_PORTS = {"postgresql": 5432, "postgres": 5432, "redis": 6379, "rediss": 6379}
PACKAGES = ("celery", "django", "psycopg", "redis", "starlette", "uvicorn", "rillbase_native")
INSTALL = (
    "Install the package again: pip install --force-reinstall rillbase-server."
    if INSTALLED
    else "Run `make run` (it installs what is missing), or install requirements/runtime.txt."
)
MOVE = (
    "Run this as an ordinary user, or install the package in an accessible directory."
    if INSTALLED
    else "Run this as an ordinary user, or move the checkout to an accessible directory."
)
INSTALL_SPARK = "pip install 'rillbase-server[spark]'" if INSTALLED else "run `make setup`"
#: By setting, what runs on Spark by default, and the value with which it does not.
WITHOUT_SPARK = {"RILLBASE_GRID": "processes", "RILLBASE_ANALYTICS_WORKERS": "threads"}


def missing_packages() -> LauncherProblem | None:
    """Return the problem of a required Python package that is not installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if not missing:
        return None
    return LauncherProblem(
        ExitCode.PREREQUISITE_MISSING, f"Not installed: {', '.join(missing)}.", INSTALL
    )


def java_version() -> int | None:
    """The major version of the machine's Java; None if there is no working one."""
    java = shutil.which("java")
    if java is None:
        return None
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match else None


def choose_processes_without_spark() -> str:
    """Choose processes and threads for what would run on Spark, if Spark is not installed; return
    what to tell the user about it.
    """
    left_open = [name for name in WITHOUT_SPARK if not os.environ.get(name)]
    if has_spark() or not left_open:
        return ""
    os.environ.update({name: WITHOUT_SPARK[name] for name in left_open})
    return (
        "Spark is not installed: the matching grid runs as processes, and the analytics pipeline "
        f"in threads. To run them on Spark, {INSTALL_SPARK}, and install Java {JAVA_NEEDED}."
    )


def has_spark() -> bool:
    """Whether the Python package of Spark is installed."""
    return find_spec("pyspark") is not None


def java_problem() -> LauncherProblem | None:
    """Return why Spark cannot run the matching grid, if it is needed."""
    if os.environ.get("RILLBASE_GRID", "spark") != "spark":
        return None
    if not has_spark():
        return LauncherProblem(
            ExitCode.PREREQUISITE_MISSING,
            "RILLBASE_GRID=spark requires Spark, which is not installed.",
            f"{INSTALL_SPARK[0].upper()}{INSTALL_SPARK[1:]}, or set RILLBASE_GRID=processes.",
        )
    version = java_version()
    if version is not None and version >= JAVA_NEEDED:
        return None
    state = "is not installed" if version is None else f"has version {version}"
    return LauncherProblem(
        ExitCode.PREREQUISITE_MISSING,
        f"The matching grid runs on Spark, which requires Java {JAVA_NEEDED} or newer; Java "
        f"{state}.",
        "Install it (Debian: openjdk-17-jre-headless), or set RILLBASE_GRID=processes.",
    )


def embedded_servers_problem(account: Account | None) -> LauncherProblem | None:
    """Return why a needed embedded server cannot be run."""
    for name, program in needed_servers():
        if not program.exists():
            return LauncherProblem(
                ExitCode.PREREQUISITE_MISSING,
                f"The embedded {name} is not installed ({program} is missing).",
                f"{INSTALL} Or use your own server by setting {', '.join(EXTERNAL_SERVERS)}.",
            )
        closed = closed_ancestor(program, account) if account else None
        if account and closed:
            return LauncherProblem(
                ExitCode.UNREACHABLE_FOR_SERVERS,
                f"When started as root, the embedded servers run as {account.name}, which cannot "
                f"access {closed} to reach {program}.",
                MOVE,
            )
    return None


def needed_servers() -> Iterator[tuple[str, Path]]:
    """Return name and program of each embedded server that is not replaced by a URL."""
    if not os.environ.get("DATABASE_URL"):
        yield "PostgreSQL", postgres.binary("postgres")
    if not os.environ.get("REDIS_URL"):
        yield "Valkey", valkey.binary()
    if not os.environ.get("STORAGE_URL"):
        yield "storage node", storage_node.binary()


def port_problem(options: UpOptions) -> LauncherProblem | None:
    """Return why the web server could not listen."""
    problem = bind_problem(options.host, options.port)
    if problem is None:
        return None
    if problem.errno == errno.EADDRINUSE:
        return port_taken(options)
    if isinstance(problem, PermissionError):
        return LauncherProblem(
            ExitCode.PORT_TAKEN,
            f"Port {options.port} is reserved for root.",
            f"Choose one above 1023: --port {_another(options)}.",
        )
    return LauncherProblem(
        ExitCode.USAGE,
        f"Cannot listen on host {options.host!r}: {problem.strerror or problem}.",
        "Use an address of this machine: --host 127.0.0.1, or --host 0.0.0.0 for all.",
    )


def port_taken(options: UpOptions) -> LauncherProblem:
    """Return the problem of a port that is in use."""
    process = holder(options.port)
    by = f" by {process.name()} (pid {process.pid})" if process else ""
    return LauncherProblem(
        ExitCode.PORT_TAKEN,
        f"Port {options.port} on {options.host} is in use{by}.",
        f"Stop that program, or choose a different port: --port {_another(options)}.",
    )


def external_server_problem() -> LauncherProblem | None:
    """Return the problem of a configured server that does not accept connections."""
    for variable in EXTERNAL_SERVERS:
        url = os.environ.get(variable)
        problem = _unreachable(variable, url) if url else None
        if problem:
            return problem
    return None


def _unreachable(variable: str, url: str) -> LauncherProblem | None:
    parts = urlsplit(url)
    if not parts.hostname:  # a socket's path: left to the driver
        return None
    try:
        port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
        socket.create_connection((parts.hostname, port), CONNECT_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        return LauncherProblem(
            ExitCode.EXTERNAL_SERVER_UNREACHABLE,
            f"The server in {variable} ({parts.hostname}) is unreachable: {error}.",
            f"Start it, or correct {variable}, or unset it to use the embedded server.",
        )
    return None


def _another(options: UpOptions) -> int:
    candidates = range(options.port + 1, min(options.port + 100, 65_536))
    free = (port for port in candidates if bind_problem(options.host, port) is None)
    return next(free, 0)
