"""A storage node, to be killed and started again at will."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path

import redis

from tests.own_valkey import free_port

BINARY = Path(sys.prefix) / "bin" / "rillbase-node"
START_TIMEOUT_S = 120.0


class OwnNode:
    """Owns one server process; data is on disk and stays with each stop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._token = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://admin:{self._token}@127.0.0.1:{self._port}"

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        arguments = ["--directory", str(self._folder), "--listen", f"127.0.0.1:{self._port}"]
        self._process = subprocess.Popen(
            [str(BINARY), *arguments],
            env={**os.environ, "RILLBASE_NODE_TOKEN": self._token},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
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
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def forget(self) -> None:
        """Lose all data. The process has been killed."""
        shutil.rmtree(self._folder)

    def close(self) -> None:
        """End the process as an operator would."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None
