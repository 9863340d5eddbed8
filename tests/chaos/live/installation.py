"""An installation whose parts a test disrupts, and which recovers by itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import cast

import psutil
import redis
import requests

from rillbase_server.web_process import HTTP_PROTOCOL, WEBSOCKET_PROTOCOL
from tests.chaos.live.report import RunReport

ROOT = Path(__file__).resolve().parents[3]
#: Shorter and longer than two seconds: the length of a lease, and the silence before `stale`.
PAUSES_S = (0.3, 1.5, 2.5, 5.0)
MOST_WRITE_PARTITIONS, MOST_QUERY_PARTITIONS = 3, 2


class Installation(ABC):
    """The parts that a test can disrupt, by name, and two app servers for its clients."""

    #: The tenant under test, and a key with all scopes.
    tenant: str
    key: str
    urls: list[str]
    #: The environment variables of the application's processes.
    environment: Mapping[str, str]

    def __init__(self, report: RunReport, rng: Random) -> None:
        self._report = report
        self._rng = rng
        self._resizing: subprocess.Popen[bytes] | None = None
        self.victims: dict[str, Callable[[], None]] = {
            "node": lambda: self._kill(self._chosen_node()),
            "pause node": lambda: self._pause(self._chosen_node()),
            "relay": lambda: self._kill(self.pid("background")),
            "pause relay": lambda: self._pause(self.pid("background")),
            "web": lambda: self._kill(self.pid("web")),
            "second web": self.kill_second_web,
            "grid": lambda: self._kill(self.pid("grid")),
            "driver": self._kill_driver,
            "valkey": lambda: self._kill(self.pid("valkey")),
            "empty valkey": self._empty_valkey,
            "postgres": lambda: self._kill(self.pid("postgres")),
            "worker": lambda: self._kill(self.pid("worker")),
            "resize": self._resize,
        }

    @abstractmethod
    def pid(self, service: str) -> int:
        """Return the pid of a service; raise `ProcessLookupError` while it does not run."""

    @abstractmethod
    def valkey(self) -> redis.Redis:
        """Return a connection to the event layer."""

    @abstractmethod
    def kill_second_web(self) -> None:
        """Kill the second app server, which is restarted."""

    @abstractmethod
    def _close(self) -> None:
        """Stop everything that the installation started."""

    def disrupt(self, victim: str) -> None:
        self._report.record("killer", victim)
        self._report.count("kills")
        self._report.count(f"kill: {victim}")
        # A victim of a moment ago may still be restarting.
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess, redis.RedisError):
            self.victims[victim]()

    def close(self) -> None:
        if self._resizing is not None:
            self._resizing.kill()
            self._resizing.wait()
        self._close()

    def _chosen_node(self) -> int:
        nodes = self._nodes()
        if not nodes:
            raise ProcessLookupError("no node")
        name = self._rng.choice(sorted(nodes))
        self._report.record("killer", f"chose {name}")
        return nodes[name]

    def _nodes(self) -> dict[str, int]:
        """Return the pids of the running nodes that have reported."""
        family = psutil.Process(self.pid("grid")).children(recursive=True)
        pids = {child.pid for child in family}
        nodes = {}
        with self.valkey() as client:
            for name in cast("list[bytes]", client.keys("{rillbase}:events:*:lease:*")):
                report = json.loads(cast("bytes | None", client.hget(name, "report")) or b"{}")
                if report.get("pid") in pids:
                    nodes[name.decode().removeprefix("{rillbase}:events:")] = int(report["pid"])
        return nodes

    @staticmethod
    def _kill(pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def _pause(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        try:
            threading.Event().wait(self._rng.choice(PAUSES_S))
        finally:
            os.kill(pid, signal.SIGCONT)

    def _kill_driver(self) -> None:
        """Kill Spark's Java process, if the grid runs on Spark."""
        for child in psutil.Process(self.pid("grid")).children(recursive=True):
            if "java" in child.name():
                child.kill()

    def _empty_valkey(self) -> None:
        with self.valkey() as client:
            client.flushall()

    def _resize(self) -> None:
        """Start a resize of the grid, unless one is running. The command may fail."""
        if self._resizing is not None and self._resizing.poll() is None:
            return
        size = [self._rng.randint(1, MOST_WRITE_PARTITIONS)]
        size.append(self._rng.randint(1, MOST_QUERY_PARTITIONS))
        self._report.record("killer", f"to {size[1]} x {size[0]} partitions")
        argv = [sys.executable, "manage.py", "resize_grid"]
        argv += ["--write-partitions", str(size[0]), "--query-partitions", str(size[1])]
        self._resizing = subprocess.Popen(
            argv,
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def web_argv(port: int) -> list[str]:
    """Return the command that starts an app server."""
    argv = [sys.executable, "-m", "uvicorn", "rillbase_server.asgi:application"]
    argv += ["--app-dir", "platform", "--http", HTTP_PROTOCOL, "--ws", WEBSOCKET_PROTOCOL]
    return [*argv, "--no-access-log", "--no-proxy-headers", "--port", str(port)]


def answers(url: str) -> bool:
    """Return whether an app server is alive."""
    try:
        return requests.get(f"{url}/healthz", timeout=5).ok
    except requests.RequestException:
        return False
