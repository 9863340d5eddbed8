"""A server process of a single test that speaks the Redis protocol and can be killed and
restarted.
"""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

import redis

from rillbase_server.launcher import ports
from tests.waiting import wait_until

#: Generous: a wait ends as soon as the first response arrives.
START_TIMEOUT_S = 120.0


class OwnProcess(ABC):
    """Owns one process. A restarted process has the same port and folder."""

    #: The file for its standard error; None: that of the tests.
    errors: int | None = None

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self._folder = folder
        self.port = port or ports.free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL, with credentials for all commands."""

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """Return the command line."""

    def _variables(self) -> Mapping[str, str]:
        """Return environment variables in addition to those of the tests."""
        return {}

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            self._command(),
            env={**os.environ, **self._variables()},
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
        )
        wait_until(self._answers, what="the server's first answer", timeout_s=START_TIMEOUT_S)

    def kill(self) -> None:
        """Kill the process, like a crash."""
        process = self._running()
        process.kill()
        process.wait()
        self._process = None

    def stop(self) -> int:
        """Stop the process as an operator would; return its exit status."""
        self._running().terminate()
        return self.ended()

    def ended(self) -> int:
        """Wait until the process ends after a request to stop; return its exit status."""
        process = self._running()
        self._process = None
        return process.wait()

    def close(self) -> None:
        if self._process is not None:
            self.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def _answers(self) -> bool:
        assert self._running().poll() is None, "the server ended"
        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False
