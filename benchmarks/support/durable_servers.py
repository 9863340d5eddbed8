"""A durable storage node and a durable Valkey of a benchmark."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.support.own_server import TOKEN, ask, running
from rillbase_server.launcher.ports import LOOPBACK, free_port
from rillbase_server.launcher.valkey import binary as valkey_binary


@contextmanager
def running_node(program: Path) -> Iterator[int]:
    """Yield the port of a node with the namespace `bench`, which syncs before it acknowledges."""
    with tempfile.TemporaryDirectory(prefix="rillbase-node-") as directory:
        port = free_port()
        command = [str(program), "--directory", directory, "--listen", f"{LOOPBACK}:{port}"]
        environment = {**os.environ, "RILLBASE_NODE_TOKEN": TOKEN}
        with running(command, environment, port, TOKEN):
            ask(port, "RB.NAMESPACE.CREATE", "bench", TOKEN, user="admin")
            yield port


@contextmanager
def running_valkey() -> Iterator[int]:
    """Yield the port of a Valkey that syncs its log before it responds."""
    with tempfile.TemporaryDirectory(prefix="rillbase-valkey-") as directory:
        port = free_port()
        options = ["--bind", LOOPBACK, "--save", "", "--dir", directory]
        durable = ["--appendonly", "yes", "--appendfsync", "always"]
        command = [str(valkey_binary()), "--port", str(port), *options, *durable]
        with running(command, dict(os.environ), port, None):
            yield port
