"""A complete Rillbase, started by `manage.py up` as a user starts it, in a separate folder."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import redis
import requests

from tests.launcher_command import argv, environment, run
from tests.waiting import wait_until

START_TIMEOUT_S = 180.0


@dataclass
class RunningLauncher:
    """One running `manage.py up`."""

    process: subprocess.Popen[bytes]
    ready_file: Path
    output: Path

    @property
    def ready(self) -> dict[str, str]:
        content: dict[str, str] = json.loads(self.ready_file.read_text())
        return content


class LauncherDirectory:
    """A data directory, and the commands that are run in it."""

    def __init__(self, directory: Path, program: Sequence[str] = ()) -> None:
        #: What is started instead of the checkout's `manage.py`, and gets no other variables than
        #: those of `up`.
        self._program = program
        self.data = directory / "data"
        self.ready_file = directory / "ready.json"
        self.output = directory / "output"

    @contextmanager
    def up(self, *options: object, **variables: str) -> Iterator[RunningLauncher]:
        """Start, with settings for the launcher's environment, and stop when the block ends."""
        arguments = [*self._program, "up"] if self._program else argv("up")
        options = ("--data-dir", self.data, "--port", 0, "--ready-file", self.ready_file, *options)
        arguments += [str(option) for option in options]
        # A killed launcher leaves its file behind, which the next one removes after a moment.
        self.ready_file.unlink(missing_ok=True)
        with self.output.open("wb") as output, self._popen(arguments, variables, output) as process:
            try:
                wait_until(
                    lambda: self.ready_file.exists() or process.poll() is not None,
                    what="the ready file",
                    timeout_s=START_TIMEOUT_S,
                )
                assert process.poll() is None, self.output.read_text()
                yield RunningLauncher(process, self.ready_file, self.output)
            finally:
                process.terminate()

    def status(self) -> dict[str, Any]:
        answer = run("status", "--json", "--data-dir", self.data)
        content: dict[str, Any] = json.loads(answer.stdout)
        assert answer.returncode == (0 if content["running"] else 3)
        return content

    def services(self) -> dict[str, Any]:
        return {service["name"]: service for service in self.status()["services"]}

    def valkey(self) -> redis.Redis:
        """Return a connection to the installation's Valkey."""
        text = (self.data / "valkey" / "valkey.conf").read_text()
        settings = dict(re.findall(r'^(port|requirepass) "?([^"\n]+)"?$', text, re.MULTILINE))
        return redis.Redis(port=int(settings["port"]), password=settings["requirepass"])

    def _popen(
        self, arguments: list[str], variables: dict[str, str], output: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        env = variables if self._program else environment(**variables)
        return subprocess.Popen(arguments, env=env, stdout=output, stderr=subprocess.STDOUT)


def sign_in(ready: dict[str, str]) -> str:
    """Return a personal token of the demo's owner."""
    with requests.Session() as browser:
        login = {"email": ready["email"], "password": ready["password"]}
        answer = browser.post(f"{ready['url']}/api/v1/auth/login", json=login, timeout=60)
        csrf = {"X-CSRF-Token": answer.json()["csrf_token"]}
        token = browser.post(
            f"{ready['url']}/api/v1/me/tokens", json={"name": "tests"}, headers=csrf, timeout=60
        )
        return str(token.json()["secret"])
