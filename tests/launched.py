"""A complete Rillbase, started by `manage.py up` as a user starts it, in a separate folder."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import redis

from tests.launcher_command import argv, environment, run
from tests.waiting import wait_until

START_TIMEOUT_S = 180.0


@dataclass
class Launched:
    """One running `manage.py up`."""

    process: subprocess.Popen[bytes]
    ready_file: Path
    output: Path

    @property
    def ready(self) -> dict[str, str]:
        content: dict[str, str] = json.loads(self.ready_file.read_text())
        return content


class Place:
    """A data directory, and the commands that are run in it."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.ready_file = directory / "ready.json"
        self.output = directory / "output"

    @contextmanager
    def up(self, *options: object, **variables: str) -> Iterator[Launched]:
        """Start, with settings for the launcher's environment, and stop when the block ends."""
        arguments = argv("up", "--data-dir", self.data, "--port", 0)
        arguments += [str(o) for o in ("--ready-file", self.ready_file, *options)]
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
                yield Launched(process, self.ready_file, self.output)
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
        return subprocess.Popen(
            arguments, env=environment(**variables), stdout=output, stderr=subprocess.STDOUT
        )
