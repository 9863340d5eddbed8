"""A storage node of a benchmark, a Valkey to compare with, and the program that loads both."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from benchmarks.support.own_server import TOKEN, ask, running
from rillbase_server.launcher.ports import LOOPBACK, free_port
from rillbase_server.launcher.valkey import binary as valkey_binary


class Load(TypedDict):
    """A server's results: commands per second, and the durations of pipelines."""

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
        """Return the commands per second of a server."""
        return self.load(port, command, pipeline, user)["rate"]

    def load(self, port: int, command: str, pipeline: int, user: str = "") -> Load:
        """Load a server."""
        access = ["--user", user, "--token", TOKEN] if user else []
        address = ["--address", f"{LOOPBACK}:{port}"]
        return self._run([*address, *access, "--command", command, "--pipeline", str(pipeline)])

    def embedded(self, durability: str, command: str) -> float:
        """Return the same for the store without a node: one thread per connection."""
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
    """Yield the port of a node with the topic `load` in two namespaces."""
    with tempfile.TemporaryDirectory(prefix="rillbase-node-") as directory:
        port = free_port()
        command = [str(program), "--directory", directory, "--durability", durability, *options]
        environment = {**os.environ, "RILLBASE_NODE_TOKEN": TOKEN}
        with running([*command, "--listen", f"{LOOPBACK}:{port}"], environment, port, TOKEN):
            for name in ("bench", "other"):
                ask(port, "RB.NAMESPACE.CREATE", name, TOKEN, user="admin")
                ask(port, "RB.TOPIC.CREATE", "load", user=name)
            yield port


class RestartableNode:
    """A node that a benchmark kills and restarts, as the launcher does."""

    def __init__(self, program: Path, directory: Path) -> None:
        self._port = free_port()
        self._command = [str(program), "--directory", str(directory)]
        self._command += ["--listen", f"{LOOPBACK}:{self._port}"]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://admin:{TOKEN}@{LOOPBACK}:{self._port}"

    def start(self) -> None:
        """Start it, without waiting."""
        environment = {**os.environ, "RILLBASE_NODE_TOKEN": TOKEN}
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(self._command, env=environment, stdout=quiet, stderr=quiet)

    def kill(self) -> None:
        """Kill it, and start it again."""
        self.stop()
        self.start()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def running_valkey() -> Iterator[int]:
    """Yield the port of a Valkey that stores nothing."""
    port = free_port()
    options = ["--bind", LOOPBACK, "--save", "", "--appendonly", "no"]
    command = [str(valkey_binary()), "--port", str(port), *options]
    with running(command, dict(os.environ), port, None):
        yield port
