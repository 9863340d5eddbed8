"""A storage node and a Valkey that lose nothing, of a benchmark's own."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from rillbase_server.launcher.ports import LOOPBACK, free_port
from rillbase_server.launcher.valkey import binary as valkey_binary

TOKEN = "the-token-of-the-benchmark"
_START_TIMEOUT_S = 60.0


@contextmanager
def running_node(program: Path) -> Iterator[int]:
    """Yield the port of a node that has the namespace `bench`, and syncs what it acknowledges."""
    with tempfile.TemporaryDirectory(prefix="rillbase-node-") as directory:
        port = free_port()
        command = [str(program), "--directory", directory, "--listen", f"{LOOPBACK}:{port}"]
        environment = {**os.environ, "RILLBASE_NODE_TOKEN": TOKEN}
        with _running(command, environment, port, TOKEN):
            ask(port, "RB.NAMESPACE.CREATE", "bench", TOKEN, user="admin")
            yield port


@contextmanager
def running_valkey() -> Iterator[int]:
    """Yield the port of a Valkey that syncs its log before it answers."""
    with tempfile.TemporaryDirectory(prefix="rillbase-valkey-") as directory:
        port = free_port()
        options = ["--bind", LOOPBACK, "--save", "", "--dir", directory]
        durable = ["--appendonly", "yes", "--appendfsync", "always"]
        command = [str(valkey_binary()), "--port", str(port), *options, *durable]
        with _running(command, dict(os.environ), port, None):
            yield port


def ask(port: int, *words: str, user: str = "bench") -> Any:
    """Return what a node answers."""
    never = Retry(ConstantBackoff(0), 0)
    with redis.Redis(port=port, username=user, password=TOKEN, retry=never) as client:
        return client.execute_command(*words)


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
