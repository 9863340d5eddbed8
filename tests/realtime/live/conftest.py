"""Relay and grid in separate processes, for the suite's server."""

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
from django.db import connections

from documents.backend import Backend
from realtime.events.layer import lease_key
from realtime.grid.layout import GRIDS, GridEpoch, NodeSpec
from tests.documents.backends import backend, pytest_generate_tests
from tests.own_valkey import free_port
from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import begin, subscribe
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

ROOT = Path(__file__).resolve().parents[3]
WRITE_PARTITIONS = 2
GRID = GridEpoch(1, 1, WRITE_PARTITIONS)


@dataclass
class BackgroundProcesses:
    """The processes behind the server. Each may be killed and started again."""

    valkey: redis.Redis
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    #: The grid of the backend that is tested.
    grid: GridEpoch = GRID

    def start(self, command: str) -> None:
        self._run(command, "manage.py", command, "--port", str(free_port()))

    def start_own_grid(self, epoch: int) -> None:
        """Start the nodes of a tenant's dedicated grid."""
        arguments = ("--port", str(free_port()), "--epoch", str(epoch))
        self._run("own grid", "manage.py", "grid", *arguments)

    def start_worker(self) -> None:
        """Start the worker that renews queries."""
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

    def is_complete(self) -> bool:
        """Return whether relay and grid run, and all nodes."""
        processes = [self.processes.get(command) for command in ("relay", "grid")]
        return all(p is not None and p.poll() is None for p in processes) and self.watches()

    def watches(self) -> bool:
        """Return whether all nodes run."""
        return all(self._is_running(node) for node in self.grid.nodes())

    def use(self, backend: Backend) -> None:
        """Test a backend from now on. The grid of native collections is created with the first."""
        if backend == self.grid.backend:
            return
        if backend == GRID.backend:
            self.grid = GRID
            return
        # Models can be imported once Django is set up.
        from tests.documents.collection import make_collection

        make_collection("", backend=backend)
        wait_until(lambda: bool(_grids_of(backend)), what=f"the grid of {backend} collections")
        self.grid = _grids_of(backend)[-1]

    def _is_running(self, node: NodeSpec) -> bool:
        lease = lease_key(node.prefix, node.epoch, node.name)
        until, report = self.valkey.hmget(lease, "until", "report")
        seconds, _ = self.valkey.time()
        return until is not None and int(until) > seconds * 1000 and b'"running"' in (report or b"")


def _grids_of(backend: Backend) -> list[GridEpoch]:
    with connections["relay"].cursor() as cursor:
        cursor.execute(GRIDS.sql)
        rows = cursor.fetchall()
    return [
        GridEpoch(installation, epoch, write, query, backend)
        for installation, epoch, write, query, of_backend, _ in rows
        if of_backend == backend
    ]


def _hubs(valkey: redis.Redis) -> set[object]:
    """Return the servers that report that they are alive."""
    return set(valkey.zrange("{rillbase}:events:1:hubs", 0, -1))


@contextmanager
def running(
    server: str, valkey_url: str, *, within_s: float = 180
) -> Iterator[BackgroundProcesses]:
    with redis.Redis.from_url(valkey_url) as client:
        hubs = _hubs(client)
        client.flushdb()
        background = BackgroundProcesses(client)
        background.start("relay")
        background.start("grid")
        try:
            wait_until(background.watches, what="the nodes to run", timeout_s=within_s)
            # A server that ran before registers all queries again once it misses its lease; a
            # client that subscribed just before is reset. Servers that have ended stay away.
            with contextlib.suppress(AssertionError):
                wait_until(
                    lambda: not hubs or not hubs.isdisjoint(_hubs(client)),
                    what="the server to miss its lease",
                    timeout_s=10,
                )
            wait_until(lambda: _can_resume(server), what="the nodes' start to be over")
            yield background
        finally:
            background.close()


def _can_resume(server: str) -> bool:
    """Return whether a returning client can resume. A node that has just started may repeat
    notifications, and a client that disconnected meanwhile receives a fresh result.
    """
    # Models can be imported once Django is set up.
    from tests.documents.collection import make_collection

    probe = make_collection(server, backend=Backend.POSTGRES)
    key = probe.caller.headers["Authorization"].removeprefix("Bearer ")
    with greeted(server, key) as client:
        answer = subscribe(client, "probe", collection=probe.name)
    with greeted(server, key) as client:
        back = begin(client, "probe", collection=probe.name, resume=answer.resume)
        return bool(back.next()["type"] == "ready")


class SharedBackground:
    """The processes behind the server, which consecutive tests share as long as they run."""

    def __init__(self, server: str, valkey_url: str) -> None:
        self._server = server
        self._valkey_url = valkey_url
        self._stack = contextlib.ExitStack()
        self._current: BackgroundProcesses | None = None

    def start(self, backend: Backend) -> BackgroundProcesses:
        """Return the running processes; start them if a test has left them in another state."""
        if self._current is None or not self._current.is_complete():
            self.stop()
            self._current = self._stack.enter_context(running(self._server, self._valkey_url))
        self._current.use(backend)
        wait_until(self._current.watches, what="the nodes to run", timeout_s=180)
        return self._current

    def stop(self) -> None:
        self._current = None
        self._stack.close()


@pytest.fixture(scope="package")
def shared_background(server: str, valkey_url: str) -> Iterator[SharedBackground]:
    shared = SharedBackground(server, valkey_url)
    yield shared
    shared.stop()


@pytest.fixture
def background(shared_background: SharedBackground, backend: Backend) -> BackgroundProcesses:
    return shared_background.start(backend)


@pytest.fixture
def changed_background(
    shared_background: SharedBackground, background: BackgroundProcesses
) -> Iterator[BackgroundProcesses]:
    """The processes for a test that changes the grid; later tests get others."""
    yield background
    shared_background.stop()


@pytest.fixture(scope="module")
def frequent_records(server: str) -> Iterator[None]:
    """The server lists its subscriptions soon after they change."""
    from realtime.subscriptions import records

    with pytest.MonkeyPatch.context() as frequent:
        frequent.setattr(records, "REPORT_S", 0.2)
        yield


@pytest.fixture
def todos(server: str, background: BackgroundProcesses) -> CollectionClient:
    # Models can be imported once Django is set up.
    from tests.documents.collection import make_collection

    return make_collection(server)


@pytest.fixture
def client(server: str, todos: CollectionClient) -> Iterator[Client]:
    """A connection with the rights of the collection's own key."""
    with greeted(server, todos.caller.headers["Authorization"].removeprefix("Bearer ")) as client:
        yield client


__all__ = ["backend", "pytest_generate_tests"]
