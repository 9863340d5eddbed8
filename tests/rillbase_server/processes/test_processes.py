"""The processes of the table, as they are started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from django.core.management import get_commands

from rillbase_server.processes.table import PROCESSES
from tests.own_valkey import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]
START_TIMEOUT_S = 120.0
#: Only analytics work loads them; each takes tens of megabytes.
COLUMNAR = ("pyarrow", "pyspark", "py4j", "pyiceberg", "numpy")
#: Tells what a running process has loaded.
ON_SIGNAL = """
import os, signal, sys
def tell(*_):
    with open(os.environ["LOADED"] + "~", "w") as file:
        file.write(" ".join(sys.modules))
    os.rename(file.name, os.environ["LOADED"])
signal.signal(signal.SIGUSR1, tell)
"""


class Running:
    """A process of the table."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process = process
        self._port = port

    def dependencies(self) -> dict[str, Any]:
        """Return what `/readyz` says of each dependency; nothing while nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=10) as got:
                body: dict[str, Any] = json.load(got)["dependencies"]
        except (urllib.error.URLError, OSError):
            return {}
        return body

    def loaded(self, report_path: Path) -> set[str]:
        """Return the modules that the process has imported."""
        self._process.send_signal(signal.SIGUSR1)
        wait_until(report_path.exists, what="the process to tell")
        return set(report_path.read_text().split())

    def end(self) -> str:
        """Stop the process; return what it wrote."""
        self._process.terminate()
        return self._process.communicate(timeout=START_TIMEOUT_S)[1]


@contextmanager
def started(name: str, tmp_path: Path) -> Iterator[Running]:
    (tmp_path / "sitecustomize.py").write_text(ON_SIGNAL)
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "manage.py", name, "--port", str(port)],
        cwd=ROOT,
        env={
            **os.environ,
            "LOADED": str(tmp_path / "loaded"),
            "PYTHONPATH": str(tmp_path),
            "RILLBASE_DATA_DIR": str(tmp_path),
        },
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield Running(process, port)
    finally:
        process.kill()
        process.wait()


def test_everything_that_the_table_names_exists() -> None:
    commands = get_commands()
    assert {commands[name] for name in PROCESSES} == {"rillbase_server"}
    assert len({process.port for process in PROCESSES.values()}) == len(PROCESSES)
    for process in PROCESSES.values():
        for service in process.services:
            for name in (service.factory, *service.close):
                assert callable(resolve_name(name))


@pytest.mark.parametrize("name", ["background", "beat", "pipeline"])
def test_each_service_of_a_process_gets_ready_without_what_analytics_needs(
    name: str, tmp_path: Path
) -> None:
    services = {service.dependency for service in PROCESSES[name].services}

    with started(name, tmp_path) as running:
        wait_until(
            lambda: (
                services
                <= {
                    name
                    for name, dependency in running.dependencies().items()
                    if dependency["state"] == "up"
                }
            ),
            what="all services",
            timeout_s=START_TIMEOUT_S,
        )
        loaded = running.loaded(tmp_path / "loaded")
        assert "Traceback" not in running.end()
    assert {"django", "rillbase_native"} <= loaded
    assert loaded.isdisjoint(COLUMNAR)


@pytest.mark.parametrize("module", ["rillbase_server.asgi", "rillbase_server.celery"])
def test_the_web_server_and_the_workers_load_nothing_that_only_analytics_needs(module: str) -> None:
    code = f"import sys, {module} as it; app = getattr(it, 'app', None)\n"
    code += "app and app.loader.import_default_modules()\n"
    code += f"print(*(name for name in {COLUMNAR!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ""
