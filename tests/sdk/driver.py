"""A client program that executes commands and reports what it sees, in lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

TIMEOUT_S = 90.0
Report = dict[str, Any]


class Reports:
    """What a client has reported, and waiting for more."""

    def __init__(self) -> None:
        self._all: list[Report] = []
        self._more = threading.Condition()

    def take(self, text: str) -> None:
        with self._more:
            self._all.append(json.loads(text))
            self._more.notify_all()

    def of(self, name: str) -> list[Report]:
        with self._more:
            return [report for report in self._all if report["name"] == name]

    def wait_for(self, name: str, wanted: Callable[[Report], bool]) -> Report:
        """Return the newest report of that name as soon as it matches."""
        return self._wait(name, lambda reports: reports[-1:], wanted)

    def saw(self, name: str, wanted: Callable[[Report], bool]) -> Report:
        """Return the first matching report of that name, however briefly it was current."""
        return self._wait(name, lambda reports: reports, wanted)

    def _wait(
        self,
        name: str,
        among: Callable[[list[Report]], list[Report]],
        wanted: Callable[[Report], bool],
    ) -> Report:
        deadline = time.monotonic() + TIMEOUT_S
        with self._more:
            while True:
                reports = [report for report in self._all if report["name"] == name]
                result = next((report for report in among(reports) if wanted(report)), None)
                if result is not None:
                    return result
                rest = deadline - time.monotonic()
                assert rest > 0, f"{name}: waited in vain; newest: {reports[-1:]}"
                self._more.wait(rest)


class Client(Protocol):
    """A client in any language, as tests use it."""

    reports: Reports

    def send(self, do: str, name: str, **members: object) -> None:
        """Give a command."""


class Program:
    """A client in a separate process."""

    def __init__(self, argv: list[str], **variables: str) -> None:
        self.reports = Reports()
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, do: str, name: str, **members: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, "name": name, **members}) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.reports.take(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=TIMEOUT_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join()
            self._process.stdout.close()


@contextmanager
def program(argv: list[str], **variables: str) -> Iterator[Program]:
    started = Program(argv, **variables)
    try:
        yield started
    finally:
        started.close()


def ask(client: Client, do: str, name: str, **members: object) -> Report:
    """Give a command and return its answer."""
    client.send(do, name, **members)
    return client.reports.wait_for(name, lambda _: True)


def shows(client: Client, name: str, wanted: list[Any], state: str = "live") -> Report:
    """Wait until a watched query shows these documents."""
    return client.reports.wait_for(
        name, lambda r: r.get("documents") == wanted and r["state"] == state
    )
