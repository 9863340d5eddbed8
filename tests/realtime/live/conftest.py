"""A whole real-time side: relay and grid in processes of their own, beside the suite's server."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis

from realtime.grid.layout import GridEpoch
from tests.own_valkey import free_port
from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import begin, subscribe
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.documents.collection import MadeCollection

ROOT = Path(__file__).resolve().parents[3]
WRITE_PARTITIONS = 2
GRID = GridEpoch(1, 1, WRITE_PARTITIONS)


@dataclass
class Backstage:
    """The processes behind the server. Each may be killed and started again."""

    valkey: redis.Redis
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, command: str) -> None:
        self._run(command, "manage.py", command, "--port", str(free_port()))

    def start_own_grid(self, epoch: int) -> None:
        """Start the nodes of a grid of a tenant's own."""
        arguments = ("--port", str(free_port()), "--epoch", str(epoch))
        self._run("own grid", "manage.py", "grid", *arguments)

    def start_worker(self) -> None:
        """Start who reads queries again."""
        if "worker" not in self.processes:
            arguments = ["-m", "celery", "--app", "rillbase_server.celery", "--quiet", "worker"]
            self._run("worker", *arguments, "--pool", "solo", "--without-gossip")

    def _run(self, name: str, *arguments: str) -> None:
        environment = {**os.environ, "RILLBASE_GRID": "processes"}
        self.processes[name] = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=environment
        )

    def kill(self, command: str) -> None:
        process = self.processes.pop(command)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=60)
            process.kill()

    def watches(self) -> bool:
        """Whether all nodes run."""
        return all(self._runs(node.name) for node in GRID.nodes())

    def _runs(self, node: str) -> bool:
        lease = f"{{rillbase}}:events:1:1:lease:{node}"
        until, report = self.valkey.hmget(lease, "until", "report")
        seconds, _ = self.valkey.time()
        return until is not None and int(until) > seconds * 1000 and b'"running"' in (report or b"")


def _hubs(valkey: redis.Redis) -> set[object]:
    """The servers that say that they are alive."""
    return set(valkey.zrange("{rillbase}:events:1:hubs", 0, -1))


@contextmanager
def running(server: str, valkey_url: str, *, within_s: float = 180) -> Iterator[Backstage]:
    with redis.Redis.from_url(valkey_url) as client:
        hubs = _hubs(client)
        client.flushdb()
        backstage = Backstage(client)
        backstage.start("relay")
        backstage.start("grid")
        try:
            wait_until(backstage.watches, what="the nodes to run", timeout_s=within_s)
            # A server that was there before registers all anew once it misses its lease; whoever
            # subscribed just before that would be reset. Servers that have ended do not come back.
            with contextlib.suppress(AssertionError):
                wait_until(
                    lambda: not hubs or not hubs.isdisjoint(_hubs(client)),
                    what="the server to miss its lease",
                    timeout_s=10,
                )
            wait_until(lambda: _goes_on(server), what="the nodes' start to be over")
            yield backstage
        finally:
            backstage.close()


def _goes_on(server: str) -> bool:
    """Whether a client that comes back can be told what it missed. A node that has just started may
    still repeat what it said, and whoever left meanwhile begins anew.
    """
    # Models can be imported once Django is set up.
    from tests.documents.collection import make_collection

    probe = make_collection(server)
    key = probe.caller.headers["Authorization"].removeprefix("Bearer ")
    with greeted(server, key) as client:
        answer = subscribe(client, "probe", collection=probe.name)
    with greeted(server, key) as client:
        back = begin(client, "probe", collection=probe.name, resume=answer.resume)
        return bool(back.next()["type"] == "ready")


@pytest.fixture(scope="module")
def backstage(server: str, valkey_url: str) -> Iterator[Backstage]:
    with running(server, valkey_url) as backstage:
        yield backstage


@pytest.fixture
def todos(server: str, backstage: Backstage) -> MadeCollection:
    # Models can be imported once Django is set up.
    from tests.documents.collection import make_collection

    return make_collection(server)


@pytest.fixture
def client(server: str, todos: MadeCollection) -> Iterator[Client]:
    """A connection with the rights of the collection's own key."""
    with greeted(server, todos.caller.headers["Authorization"].removeprefix("Bearer ")) as client:
        yield client
