"""A full installation: everything that `manage.py up` starts, and a second app server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import redis

from tests.chaos.live.stage import ROOT, Stage, answers, web_argv
from tests.chaos.live.story import Story
from tests.launched import Place
from tests.own_valkey import free_port
from tests.waiting import wait_until

START_TIMEOUT_S = 120.0


class Installed(Stage):
    """Services of the launcher, which restarts them itself."""

    def __init__(self, place: Place, ready: dict[str, str], story: Story, chance: Random) -> None:
        super().__init__(story, chance)
        self._place = place
        self._second_port = free_port()
        self._second: subprocess.Popen[bytes] | None = None
        self.tenant, self.key = ready["tenant"], ready["api_key"]
        self.environment = _environment_of(int(place.services()["web"]["pid"]))
        self.urls = [ready["url"], f"http://127.0.0.1:{self._second_port}"]

    def pid(self, service: str) -> int:
        pid = self._place.services()[service]["pid"]
        if pid is None:
            raise ProcessLookupError(service)
        return int(pid)

    def valkey(self) -> redis.Redis:
        return self._place.valkey()

    def kill_second_web(self) -> None:
        self._close()
        self.start_second_web()

    def start_second_web(self) -> None:
        path = self._place.data / "second.log"
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
def installed(place: Place, story: Story, chance: Random, grid: str) -> Iterator[Stage]:
    """Start a full installation."""
    with place.up(RILLBASE_GRID=grid, RILLBASE_DEFAULT_PLAN="dedicated") as launched:
        stage = Installed(place, launched.ready, story, chance)
        try:
            stage.start_second_web()
            yield stage
        finally:
            stage.close()
