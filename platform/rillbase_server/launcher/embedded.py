"""Embedded servers without a supervisor, for tests and scripts. They share the code of the
launcher's services: a leftover server in the directory is stopped first, a start that fails because
of a killed server is retried, and the servers die with their parent.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from .account import private_directory, server_account
from .child import server_environment, spawn
from .ports import free_port
from .postgres import TRANSIENT_FAILURES, PostgresCluster
from .process import identify, kill_tree
from .valkey import ValkeyStore

START_DEADLINE_S = 30.0
STOP_GRACE_S = 20.0
POLL_S = 0.02
START_ATTEMPTS = 8
FIRST_RETRY_S = 0.1
SHOWN_LOG_BYTES = 4_000


class EmbeddedServerError(Exception):
    """A server did not start; the message ends with its last output."""


class _EmbeddedServer:
    """Common parts of both servers: start, wait, stop."""

    name: str

    def __init__(
        self, directory: Path, stop_signal: signal.Signals, start_deadline_s: float
    ) -> None:
        self.directory = directory.absolute()
        self._start_deadline_s = start_deadline_s
        self.account = server_account()
        self._stop_signal = stop_signal
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The server's process id."""
        if self._process is None:
            raise EmbeddedServerError(f"{self.name} is not running")
        return self._process.pid

    @property
    def log(self) -> Path:
        """The file of the server's output."""
        return self.directory / f"{self.name}.log"

    def stop(self) -> None:
        """Stop the server gracefully, or by force if it takes too long."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(self._stop_signal)
            try:
                self._process.wait(STOP_GRACE_S)
            except subprocess.TimeoutExpired:
                if identity := identify(self._process.pid):
                    kill_tree(identity)
                self._process.wait()
        self._process = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _spawn(self, argv: list[str]) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            return spawn(
                argv,
                cwd=self.directory,
                env=server_environment(),
                output=output,
                account=self.account,
                death_signal=self._stop_signal,
            )

    def _await(self, process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> None:
        self._process = process
        deadline = time.monotonic() + self._start_deadline_s
        while True:
            # Read first: a process may become ready and exit at once, as initdb does.
            has_exited = process.poll() is not None
            if ready():
                return
            if has_exited:
                raise self._failure(f"exited during start with code {process.returncode}")
            if time.monotonic() > deadline:
                self.stop()
                raise self._failure(f"was not ready within {self._start_deadline_s:.0f} s")
            time.sleep(POLL_S)

    def _failure(self, what: str) -> EmbeddedServerError:
        last = self.log.read_bytes()[-SHOWN_LOG_BYTES:].decode(errors="replace")
        return EmbeddedServerError(f"{self.name} {what}; its log {self.log} ends:\n{last}")


class EmbeddedPostgres(_EmbeddedServer):
    """A PostgreSQL server in ``directory``, whose cluster is created on first use."""

    name = "postgres"

    def __init__(
        self,
        directory: Path,
        *,
        superuser_password: str,
        port: int | None = None,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
        start_deadline_s: float = START_DEADLINE_S,
    ) -> None:
        super().__init__(directory, signal.SIGINT, start_deadline_s)
        self.cluster = PostgresCluster(
            self.directory,
            superuser_password,
            port or free_port(),
            self.account,
            durable,
            settings or {},
        )

    @property
    def url(self) -> str:
        """The superuser's connection URL."""
        return self.cluster.url

    def start(self) -> None:
        """Start the server and return once it accepts connections."""
        self.stop()  # collects a server that was killed
        private_directory(self.directory, self.account)
        if not self.cluster.initialised:
            self._create_cluster()
        self.cluster.stop_running_server(STOP_GRACE_S)
        pause_s = FIRST_RETRY_S
        for attempts_left in reversed(range(START_ATTEMPTS)):
            try:
                self._start_once()
            except EmbeddedServerError as failure:
                transient = any(sign in str(failure) for sign in TRANSIENT_FAILURES)
                if not (transient and attempts_left):
                    raise
                time.sleep(pause_s)
                pause_s *= 2
            else:
                return

    def __enter__(self) -> Self:
        self.start()
        return self

    def _start_once(self) -> None:
        self.cluster.before_start()
        self.log.unlink(missing_ok=True)
        process = self._spawn(self.cluster.server_argv())
        self._await(process, lambda: self.cluster.accepts_connections(process.pid))

    def _create_cluster(self) -> None:
        self.cluster.before_initdb()
        process = self._spawn(self.cluster.initdb_argv())
        self._await(process, lambda: process.poll() == 0)
        self.cluster.after_initdb()


class EmbeddedValkey(_EmbeddedServer):
    """A Valkey server in ``directory``."""

    name = "valkey"

    def __init__(self, directory: Path, *, password: str, port: int | None = None) -> None:
        super().__init__(directory, signal.SIGTERM, START_DEADLINE_S)
        self.store = ValkeyStore(self.directory, password, port or free_port(), self.account)

    @property
    def url(self) -> str:
        """The connection URL, database 0."""
        return self.store.url

    def start(self) -> None:
        """Start the server and return once it responds."""
        self.stop()  # collects a server that was killed
        self.log.unlink(missing_ok=True)
        try:
            self._start_once()
        except EmbeddedServerError as failure:
            if not self.store.quarantine_damaged_data(str(failure)):
                raise
            self._start_once()

    def _start_once(self) -> None:
        self.store.before_start()
        self._await(self._spawn(self.store.argv()), self.store.answers)

    def __enter__(self) -> Self:
        self.start()
        return self
