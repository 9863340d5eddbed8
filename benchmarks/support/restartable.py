"""Services that a benchmark kills and restarts on the same port, as the launcher does."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field

import psutil

from benchmarks.support.installation import ROOT, SERVICE_DEADLINE_S, Installation
from rillbase_server.launcher.ports import free_port


@dataclass
class Restartable:
    """One service of an installation."""

    installed: Installation
    name: str
    arguments: list[str]
    probe: str
    extra: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, without waiting."""
        with (self.installed.directory / f"{self.name}.log").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, *self.arguments, "--port", str(self.port)],
                env={**self.installed.environment, **self.extra},
                cwd=ROOT,
                stdout=output,
                stderr=output,
            )

    def until_ready(self) -> None:
        deadline = time.monotonic() + SERVICE_DEADLINE_S
        while time.monotonic() < deadline:
            try:
                self.fetch(self.probe)
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
            else:
                return
        raise RuntimeError(f"{self.name} did not become ready: see {self.installed.directory}")

    def fetch(self, path: str) -> bytes:
        address = f"http://127.0.0.1:{self.port}{path}"
        with urllib.request.urlopen(address, timeout=2) as answer:
            content: bytes = answer.read()
        return content

    def kill(self) -> None:
        """Kill it with all its children, and start it again."""
        self._kill_family()
        self.start()

    def stop(self) -> None:
        self._kill_family()

    def _kill_family(self) -> None:
        if self._process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self._process.pid)
            for member in [parent, *parent.children(recursive=True)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.kill()
        self._process.wait()


@contextlib.contextmanager
def running(services: list[Restartable]) -> Iterator[None]:
    """Run several services, each started when those before it are ready."""
    try:
        for service in services:
            service.start()
            service.until_ready()
        yield
    finally:
        for service in reversed(services):
            service.stop()
