"""A full installation: everything that `manage.py up` starts, and a second app server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import redis

from tests.chaos.live.installation import ROOT, Installation, answers, web_argv
from tests.chaos.live.report import RunReport
from tests.launcher_process import LauncherDirectory
from tests.own_valkey import free_port
from tests.waiting import wait_until

START_TIMEOUT_S = 120.0


class FullInstallation(Installation):
    """The services of a launcher, which restarts them."""

    def __init__(
        self,
        launcher_directory: LauncherDirectory,
        ready: dict[str, str],
        report: RunReport,
        rng: Random,
    ) -> None:
        super().__init__(report, rng)
        self._directory = launcher_directory
        self._second_port = free_port()
        self._second: subprocess.Popen[bytes] | None = None
        self.tenant, self.key = ready["tenant"], ready["api_key"]
        self.environment = _environment_of(int(launcher_directory.services()["web"]["pid"]))
        self.urls = [ready["url"], f"http://127.0.0.1:{self._second_port}"]

    def pid(self, service: str) -> int:
        pid = self._directory.services()[service]["pid"]
        if pid is None:
            raise ProcessLookupError(service)
        return int(pid)

    def valkey(self) -> redis.Redis:
        return self._directory.valkey()

    def kill_second_web(self) -> None:
        self._close()
        self.start_second_web()

    def start_second_web(self) -> None:
        path = self._directory.data / "second.log"
        with path.open("wb") as log:
            self._second = process = subprocess.Popen(
                web_argv(self._second_port),
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        wait_until(
            lambda: answers(self.urls[1]) or process.poll() is not None,
            what="the second web",
            timeout_s=START_TIMEOUT_S,
        )
        assert process.poll() is None, path.read_text()

    def _close(self) -> None:
        if self._second is not None:
            self._second.kill()
            self._second.wait()


def _environment_of(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


@contextmanager
def full_installation(
    launcher_directory: LauncherDirectory, report: RunReport, rng: Random, grid: str
) -> Iterator[Installation]:
    """Start a full installation."""
    with launcher_directory.up(RILLBASE_GRID=grid, RILLBASE_DEFAULT_PLAN="dedicated") as launched:
        installation = FullInstallation(launcher_directory, launched.ready, report, rng)
        try:
            installation.start_second_web()
            yield installation
        finally:
            installation.close()
