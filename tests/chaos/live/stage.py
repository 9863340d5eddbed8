"""An installation that may be hurt, part by part, and comes back by itself."""

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
from tests.chaos.live.story import Story

ROOT = Path(__file__).resolve().parents[3]
#: Around the two seconds of a lease, and the two after which silence is `stale`.
PAUSES_S = (0.3, 1.5, 2.5, 5.0)
MOST_WRITE_PARTITIONS, MOST_QUERY_PARTITIONS = 3, 2


class Stage(ABC):
    """What may be killed, by name, and two app servers that anybody may go to."""

    #: The tenant that all of it happens to, and a key that may do everything.
    tenant: str
    key: str
    urls: list[str]
    #: What processes of the application find around them.
    environment: Mapping[str, str]

    def __init__(self, story: Story, chance: Random) -> None:
        self._story = story
        self._chance = chance
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
        """Return the process of a service; raise `ProcessLookupError` while there is none."""

    @abstractmethod
    def valkey(self) -> redis.Redis:
        """Return a connection to the event layer."""

    @abstractmethod
    def kill_second_web(self) -> None:
        """Kill the second app server, which comes back."""

    @abstractmethod
    def _close(self) -> None:
        """End everything that this made."""

    def hurt(self, victim: str) -> None:
        self._story.tell("killer", victim)
        self._story.count("kills")
        self._story.count(f"kill: {victim}")
        # What was hurt a moment ago may not be there to be hurt again.
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
        name = self._chance.choice(sorted(nodes))
        self._story.tell("killer", f"it is {name}")
        return nodes[name]

    def _nodes(self) -> dict[str, int]:
        """Return the processes of the nodes that have said how they are, and are there."""
        family = psutil.Process(self.pid("grid")).children(recursive=True)
        pids = {child.pid for child in family}
        found = {}
        with self.valkey() as client:
            for name in cast("list[bytes]", client.keys("{rillbase}:events:*:lease:*")):
                report = json.loads(cast("bytes | None", client.hget(name, "report")) or b"{}")
                if report.get("pid") in pids:
                    found[name.decode().removeprefix("{rillbase}:events:")] = int(report["pid"])
        return found

    @staticmethod
    def _kill(pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def _pause(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        try:
            threading.Event().wait(self._chance.choice(PAUSES_S))
        finally:
            os.kill(pid, signal.SIGCONT)

    def _kill_driver(self) -> None:
        """Kill Spark's Java process; without Spark there is none."""
        for child in psutil.Process(self.pid("grid")).children(recursive=True):
            if "java" in child.name():
                child.kill()

    def _empty_valkey(self) -> None:
        with self.valkey() as client:
            client.flushall()

    def _resize(self) -> None:
        """Have another grid take over, unless one is about to. The command may well fail."""
        if self._resizing is not None and self._resizing.poll() is None:
            return
        size = [self._chance.randint(1, MOST_WRITE_PARTITIONS)]
        size.append(self._chance.randint(1, MOST_QUERY_PARTITIONS))
        self._story.tell("killer", f"to {size[1]} x {size[0]} partitions")
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
    """Return how an app server is started."""
    argv = [sys.executable, "-m", "uvicorn", "rillbase_server.asgi:application"]
    argv += ["--app-dir", "platform", "--http", HTTP_PROTOCOL, "--ws", WEBSOCKET_PROTOCOL]
    return [*argv, "--no-access-log", "--no-proxy-headers", "--port", str(port)]


def answers(url: str) -> bool:
    """Tell whether an app server is alive."""
    try:
        return requests.get(f"{url}/healthz", timeout=5).ok
    except requests.RequestException:
        return False
