"""A whole installation with a second app server, and ways to hurt each part of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import cast

import psutil
import redis
import requests

from tests.chaos.live.story import Story
from tests.launched import Launched, Place
from tests.own_valkey import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]
BACK_S = 120.0
#: Around the two seconds of a lease, and the two after which silence is `stale`.
PAUSES_S = (0.3, 1.5, 2.5, 5.0)


class Stage:
    """What may be killed, by name. What the launcher runs it starts again by itself."""

    def __init__(self, place: Place, launched: Launched, story: Story, chance: Random) -> None:
        self._place = place
        self._story = story
        self._chance = chance
        self._second_port = free_port()
        self._second: subprocess.Popen[bytes] | None = None
        self._environment = self._environment_of(int(place.services()["web"]["pid"]))
        self.urls = [launched.ready["url"], f"http://127.0.0.1:{self._second_port}"]
        self.victims: dict[str, Callable[[], None]] = {
            "node": self._kill_node,
            "pause node": self._pause_node,
            "relay": lambda: self._kill_service("relay"),
            "pause relay": self._pause_relay,
            "web": lambda: self._kill_service("web"),
            "second web": self._kill_second,
            "grid": lambda: self._kill_service("grid"),
            "driver": self._kill_driver,
            "valkey": lambda: self._kill_service("valkey"),
            "empty valkey": self._empty_valkey,
            "postgres": lambda: self._kill_service("postgres"),
            "worker": lambda: self._kill_service("worker"),
        }

    def hurt(self, victim: str) -> None:
        self._story.tell("killer", victim)
        self._story.count("kills")
        self._story.count(f"kill: {victim}")
        # What was hurt a moment ago may not be there to be hurt again.
        with contextlib.suppress(ProcessLookupError, redis.RedisError):
            self.victims[victim]()

    def start_second(self) -> None:
        argv = [sys.executable, "-m", "uvicorn", "rillbase_server.asgi:application"]
        argv += ["--app-dir", "platform", "--ws", "websockets-sansio", "--no-access-log"]
        argv += ["--no-proxy-headers", "--port", str(self._second_port)]
        path = self._place.data / "second.log"
        with path.open("wb") as log:
            self._second = process = subprocess.Popen(
                argv, cwd=ROOT, env=self._environment, stdout=log, stderr=log
            )
        wait_until(
            lambda: _answers(self.urls[1]) or process.poll() is not None,
            what="the second web",
            timeout_s=BACK_S,
        )
        assert process.poll() is None, path.read_text()

    def close(self) -> None:
        if self._second is not None:
            self._second.kill()
            self._second.wait()

    def nodes(self) -> dict[str, int]:
        """Return the processes of the nodes that have said how they are."""
        with self._place.valkey() as client:
            found = {}
            for name in cast("list[bytes]", client.keys("{rillbase}:events:*:lease:*")):
                report = json.loads(cast("bytes | None", client.hget(name, "report")) or b"{}")
                if "pid" in report:
                    found[name.decode().partition(":lease:")[2]] = int(report["pid"])
            return found

    @staticmethod
    def _environment_of(pid: int) -> dict[str, str]:
        pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
        return dict(pair.split("=", 1) for pair in pairs if "=" in pair)

    def _pid(self, service: str) -> int:
        pid = self._place.services()[service]["pid"]
        if pid is None:
            raise ProcessLookupError(service)
        return int(pid)

    def _kill_service(self, service: str) -> None:
        os.kill(self._pid(service), signal.SIGKILL)

    def _kill_node(self) -> None:
        os.kill(self._chosen_node(), signal.SIGKILL)

    def _chosen_node(self) -> int:
        nodes = self.nodes()
        if not nodes:
            raise ProcessLookupError("no node")
        name = self._chance.choice(sorted(nodes))
        self._story.tell("killer", f"it is {name}")
        return nodes[name]

    def _pause_node(self) -> None:
        self._pause(self._chosen_node())

    def _pause_relay(self) -> None:
        self._pause(self._pid("relay"))

    def _pause(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        try:
            threading.Event().wait(self._chance.choice(PAUSES_S))
        finally:
            os.kill(pid, signal.SIGCONT)

    def _kill_second(self) -> None:
        assert self._second is not None
        self._second.kill()
        self._second.wait()
        self.start_second()

    def _kill_driver(self) -> None:
        """Kill Spark's Java process; without Spark there is none."""
        supervisor = psutil.Process(self._pid("grid"))
        for child in supervisor.children(recursive=True):
            if "java" in child.name():
                child.kill()

    def _empty_valkey(self) -> None:
        with self._place.valkey() as client:
            client.flushall()


def _answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthz", timeout=5).ok
    except requests.RequestException:
        return False


@contextmanager
def staged(
    place: Place, story: Story, chance: Random, grid: str
) -> Iterator[tuple[Stage, dict[str, str]]]:
    """Bring everything up; yields it with what the launcher says when it is ready."""
    with place.up(RILLBASE_GRID=grid, RILLBASE_DEFAULT_PLAN="dedicated") as launched:
        ready = launched.ready
        stage = Stage(place, launched, story, chance)
        try:
            stage.start_second()
            yield stage, ready
        finally:
            stage.close()
