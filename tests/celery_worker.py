"""Celery processes for a single test, which can stop and kill them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.own_valkey import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[1]
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


class CeleryWorker:
    """Runs `tests.task_bench` with a broker chosen by the test and the test's database."""

    def __init__(self, folder: Path, broker_url: str, *, processes: int = 1) -> None:
        self._folder = folder
        self._broker_url = broker_url
        self._processes = processes
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return (self._folder / "worker.log").read_text()

    def start(self, *, visibility_timeout_s: int = 300) -> None:
        ready = self._folder / "worker.ready"
        ready.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "celery", "-A", "tests.task_bench", "--quiet", "worker"]
        argv += ["--pool", "prefork", "--concurrency", str(self._processes)]
        argv += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        with (self._folder / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                argv,
                cwd=ROOT,
                env={
                    **os.environ,
                    "BROKER_URL": self._broker_url,
                    "BENCH_READY_FILE": str(ready),
                    "BENCH_VISIBILITY_TIMEOUT_S": str(visibility_timeout_s),
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._process = process
        wait_until(
            lambda: ready.exists() or process.poll() is not None,
            what="the worker to be ready",
            timeout_s=START_TIMEOUT_S,
        )
        assert process.poll() is None, self.log

    def kill(self) -> None:
        """Kill all processes of the worker, as a power failure would."""
        process, self._process = self._running(), None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """Stop the worker gracefully: it finishes its current tasks."""
        process = self._running()
        process.terminate()
        process.wait(STOP_TIMEOUT_S)
        self._process = None

    def close(self) -> None:
        if self._process is not None:
            self.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process


@contextmanager
def running_beat(folder: Path, broker_url: str) -> Iterator[None]:
    """Run the installation's beat, as the launcher does, until the block ends."""
    argv = [sys.executable, "manage.py", "beat", "--port", str(free_port())]
    environment = {**os.environ, "BROKER_URL": broker_url, "RILLBASE_DATA_DIR": str(folder)}
    with (folder / "beat.log").open("ab") as log:
        beat = subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        beat.terminate()
        beat.wait(STOP_TIMEOUT_S)
