"""A process that is restarted whenever it exits, as the launcher does."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rillbase_server.launcher.account import Account
from rillbase_server.launcher.child import end_family

#: Delay between an exit and the restart.
RESTART_DELAY_S = 0.2


@dataclass(frozen=True)
class Program:
    """How to start a process."""

    name: str
    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    account: Account | None = None
    before_start: Callable[[], None] | None = None


class SupervisedProcess:
    """Restarts a program whenever it exits, until closed."""

    def __init__(self, program: Program, folder: Path) -> None:
        self._program = program
        self._log = folder / f"{program.name}.log"
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._supervisor = threading.Thread(target=self._supervise, name=program.name, daemon=True)
        self._supervisor.start()

    @property
    def pid(self) -> int:
        process = self._process
        if process is None or process.poll() is not None:
            raise ProcessLookupError(self._program.name)
        return process.pid

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        with self._lock:
            self._closing.set()
            if self._process is not None:
                # Kills child processes too.
                end_family(self._process.pid)
        self._supervisor.join()

    def _supervise(self) -> None:
        while (process := self._start()) is not None:
            process.wait()
            self._closing.wait(RESTART_DELAY_S)

    def _start(self) -> subprocess.Popen[bytes] | None:
        program = self._program
        with self._lock:
            if self._closing.is_set():
                return None
            if program.before_start is not None:
                program.before_start()
            account = program.account
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    program.argv,
                    cwd=program.cwd,
                    env=program.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    user=account.uid if account else None,
                    group=account.gid if account else None,
                    extra_groups=[] if account else None,
                )
            return self._process
