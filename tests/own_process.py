"""A server process of a test's own that speaks Redis's protocol, to be killed and started again at
will.
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

#: Ample: whoever waits for the first answer goes on as soon as it is there.
START_TIMEOUT_S = 120.0


class OwnProcess(ABC):
    """Owns one process. It comes back to the same port and the same folder."""

    #: Where its errors go; None: to those of the tests.
    errors: int | None = None

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self._folder = folder
        self.port = port or ports.free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    @abstractmethod
    def url(self) -> str:
        """Where it is, and who may do everything."""

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """Return how it is started."""

    def _variables(self) -> Mapping[str, str]:
        """Return what it finds in its environment beside what is in that of the tests."""
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
        """End the process as a crash would."""
        process = self._running()
        process.kill()
        process.wait()
        self._process = None

    def stop(self) -> int:
        """End the process as an operator would; return its exit status."""
        self._running().terminate()
        return self.ended()

    def ended(self) -> int:
        """Wait for an end that somebody has asked for; return the exit status."""
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
        assert self._running().poll() is None, "the server has ended"
        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False
