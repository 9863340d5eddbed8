"""Waits for other servers before a process of this release starts."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Protocol

from redis import Redis
from redis.exceptions import RedisError

from foundation.environment import environment
from rillbase_server.dependencies import DatabaseProbe
from rillbase_server.version import VERSION

PAUSE_S = 1.0
TIMEOUT_S = 5.0
#: How often the reason for waiting is reported.
REPORT_INTERVAL_S = 15.0

Report = Callable[[str], object]


class AwaitedServer(Protocol):
    """A server that may have another release than this process."""

    @property
    def name(self) -> str: ...

    def release(self) -> str:
        """Return its release, or raise `OSError` while it does not serve."""


class StorageNodeServer:
    """The storage node, asked as its administrator."""

    name = "the storage node"

    def release(self) -> str:
        try:
            with Redis.from_url(
                environment().storage_url,
                decode_responses=True,
                socket_timeout=TIMEOUT_S,
                socket_connect_timeout=TIMEOUT_S,
            ) as node:
                greeting = node.execute_command("HELLO", "3")
        except RedisError as error:
            raise OSError(str(error)) from error
        return str(greeting["version"])


class ReadyServer:
    """A server that tells at `/readyz` whether it is ready, and its release."""

    def __init__(self, url: str) -> None:
        self.name = url

    def release(self) -> str:
        request = urllib.request.Request(f"{self.name}/readyz")  # noqa: S310 -- the operator's
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            return str(json.load(answer).get("version", "0"))


def wait_for_database(report: Report) -> None:
    """Wait until the database responds and has this release's migrations."""
    probe, reported_s = DatabaseProbe(), -REPORT_INTERVAL_S
    while True:
        try:
            probe.ping()
            probe.migrated()
        except Exception as error:  # noqa: BLE001 -- wait after any error
            if time.monotonic() - reported_s >= REPORT_INTERVAL_S:
                reported_s = time.monotonic()
                report(f"waiting for the database: {type(error).__name__}: {error}")
            time.sleep(PAUSE_S)
        else:
            return


def wait_for_release(server: AwaitedServer, max_wait_s: float, report: Report) -> bool:
    """Wait until a server has this release or a later one; return False after `max_wait_s`."""
    deadline_s, last = time.monotonic() + max_wait_s, ""
    while True:
        try:
            release = server.release()
            lacks = "" if _number(release) >= _number(VERSION) else f"it runs release {release}"
        except (OSError, ValueError) as error:
            lacks = str(error)
        if not lacks:
            return True
        if lacks != last:
            report(f"waiting for {server.name}: {lacks}")
            last = lacks
        if time.monotonic() >= deadline_s:
            report(f"continuing without {server.name}: {lacks}")
            return False
        time.sleep(PAUSE_S)


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.partition("-")[0].split("."))
