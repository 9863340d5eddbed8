"""A storage node of a test's own, to be killed, stopped and started again at will."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.own_valkey import free_port
from tests.waiting import wait_until

BINARY = Path(sys.executable).parent / "rillbase-node"
TOKEN = "the-administrators-token"
#: Ample: whoever waits for an answer goes on as soon as it is there.
ANSWER_TIMEOUT_S = 60.0


def token_of(namespace: str) -> str:
    """Return the token of a namespace of tests."""
    return f"the-token-of-{namespace}"


def ask(client: redis.Redis | redis.client.Pipeline, *words: object) -> Any:
    """Give a command."""
    return client.execute_command(*words)  # type: ignore[no-untyped-call]


class OwnStorageNode:
    """Owns one process and its data, which outlives the process."""

    def __init__(self, folder: Path, **options: object) -> None:
        self._folder = folder
        self._options = options
        self.port, self.metrics_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        """The administrator's."""
        return f"redis://admin:{TOKEN}@127.0.0.1:{self.port}"

    def start(self) -> None:
        options: dict[str, object] = {
            "directory": self._folder / "node",
            "listen": f"127.0.0.1:{self.port}",
            "metrics": f"127.0.0.1:{self.metrics_port}",
            "threads": 2,
            **self._options,
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        environment = {**os.environ, "RILLBASE_NODE_TOKEN": TOKEN}
        self._process = subprocess.Popen([BINARY, *words], env=environment)
        wait_until(self._answers, what="the storage node's first answer")

    def client(self, namespace: str = "admin", token: str = TOKEN, **options: Any) -> redis.Redis:
        """Return a client, which decodes what it is answered unless told otherwise."""
        # Tests say themselves what happens again.
        always: dict[str, Any] = {"decode_responses": True, "retry": Retry(NoBackoff(), 0)}
        options = {"socket_timeout": ANSWER_TIMEOUT_S, **always, **options}
        return redis.Redis(port=self.port, username=namespace, password=token, **options)

    def namespace(self, name: str, **options: Any) -> redis.Redis:
        """Make a namespace and return a client in it."""
        token = token_of(name)
        with self.client() as admin:
            ask(admin, "RB.NAMESPACE.CREATE", name, token)
        return self.client(name, token, **options)

    def metric(self, name: str) -> float:
        """Return a figure of the page of metrics."""
        with urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics") as page:
            lines = page.read().decode().splitlines()
        found = [line.split() for line in lines if not line.startswith("#")]
        return {words[0]: float(words[1]) for words in found}[name]

    def kill(self) -> None:
        """End the process as a crash would."""
        process = self._running()
        process.kill()
        process.wait()
        self._process = None

    def stop(self) -> int:
        """End the process as an operator would; return its exit status."""
        process = self._running()
        process.send_signal(signal.SIGTERM)
        self._process = None
        return process.wait()

    def ended(self) -> int:
        """Wait for an end that somebody else has asked for; return the exit status."""
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
        assert self._running().poll() is None, "the storage node has ended"
        try:
            with self.client() as admin:
                return bool(admin.ping())
        except redis.ConnectionError:
            return False
