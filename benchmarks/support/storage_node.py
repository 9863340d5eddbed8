"""A storage node of the benchmark's own, a Valkey beside it, and the program that loads both."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from rillbase_server.launcher.ports import LOOPBACK, free_port
from rillbase_server.launcher.valkey import binary as valkey_binary

TOKEN = "the-token-of-the-benchmark"
_START_TIMEOUT_S = 60.0


class Load(TypedDict):
    """What a server answered: commands a second, and how long pipelines took."""

    rate: float
    p50_us: float
    p99_us: float


@dataclass(frozen=True, slots=True)
class Loader:
    """`node_load`: pipelined commands over some connections."""

    program: Path
    seconds: int
    connections: int = 2

    def rate(self, port: int, command: str, pipeline: int, user: str = "") -> float:
        """Return how many commands a second a server answers."""
        return self.load(port, command, pipeline, user)["rate"]

    def load(self, port: int, command: str, pipeline: int, user: str = "") -> Load:
        """Load a server."""
        access = ["--user", user, "--token", TOKEN] if user else []
        address = ["--address", f"{LOOPBACK}:{port}"]
        return self._run([*address, *access, "--command", command, "--pipeline", str(pipeline)])

    def embedded(self, durability: str, command: str) -> float:
        """Return the same for the store without a node: a thread for each connection."""
        with tempfile.TemporaryDirectory(prefix="rillbase-embedded-") as directory:
            where = ["--embedded", directory, "--durability", durability]
            return self._run([*where, "--command", command, "--pipeline", "1"])["rate"]

    def _run(self, arguments: list[str]) -> Load:
        size = ["--seconds", str(self.seconds), "--connections", str(self.connections)]
        command = [str(self.program), *arguments, *size]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return cast("Load", json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def running_node(program: Path, durability: str, *options: str) -> Iterator[int]:
    """Yield the port of a node that has the topic `load` in two namespaces."""
    with tempfile.TemporaryDirectory(prefix="rillbase-node-") as directory:
        port = free_port()
        command = [str(program), "--directory", directory, "--durability", durability, *options]
        environment = {**os.environ, "RILLBASE_NODE_TOKEN": TOKEN}
        with _running([*command, "--listen", f"{LOOPBACK}:{port}"], environment, port, TOKEN):
            for name in ("bench", "other"):
                _ask(port, "admin", "RB.NAMESPACE.CREATE", name, TOKEN)
                _ask(port, name, "RB.TOPIC.CREATE", "load")
            yield port


@contextmanager
def running_valkey() -> Iterator[int]:
    """Yield the port of a Valkey that keeps nothing."""
    port = free_port()
    options = ["--bind", LOOPBACK, "--save", "", "--appendonly", "no"]
    command = [str(valkey_binary()), "--port", str(port), *options]
    with _running(command, dict(os.environ), port, None):
        yield port


@contextmanager
def _running(
    command: list[str], environment: dict[str, str], port: int, token: str | None
) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet) as process:
        try:
            _await(port, token)
            yield
        finally:
            process.terminate()


def _await(port: int, token: str | None) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            with redis.Redis(port=port, password=token) as client:
                client.ping()
        except redis.ConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _ask(port: int, user: str, *words: str) -> None:
    never = Retry(ConstantBackoff(0), 0)
    with redis.Redis(port=port, username=user, password=TOKEN, retry=never) as client:
        client.execute_command(*words)
