"""Our programs write only to the two folders that the chart mounts.

Each runs with the command of the chart, in a mount namespace in which everything else is read-only.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kube.rendering import containers, rendered
from tests.own_valkey import free_port
from tests.waiting import wait_until

pytestmark = [pytest.mark.kube, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 240.0
TEMPORARY = Path("/tmp")
UNSHARED = ("unshare", "--mount", "--propagation", "private")


def _may_close() -> bool:
    command = [*UNSHARED, "mount", "-o", "remount,ro,bind", "/"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def closing(scratch: Path) -> str:
    """Return the commands that make everything read-only but `/tmp`, which is the test's own folder
    then; so is what the chart mounts below /var. A checkout in `/tmp` stays where it is.
    """
    commands = []
    if ROOT.is_relative_to(TEMPORARY):
        place = shlex.quote(str(scratch / ROOT.relative_to(TEMPORARY)))
        commands += [
            f"mkdir -p {place}",
            f"mount --bind {shlex.quote(str(ROOT))} {place}",
            f"mount -o remount,ro,bind {place}",
        ]
    commands += [
        f"mount --rbind {shlex.quote(str(scratch))} {TEMPORARY}",
        "mount -o remount,ro,bind /",
        f"cd {shlex.quote(str(ROOT))}",
        'exec "$@"',
    ]
    return " && ".join(commands)


needs_namespaces = pytest.mark.skipif(not _may_close(), reason="no mount namespace can be made")


@contextmanager
def running_read_only(
    command: list[str], scratch: Path
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run a program that can write only to `scratch`; yields it and its output."""
    (scratch / "data").mkdir(parents=True)
    log = scratch.with_suffix(".log")
    environment = {**os.environ, "HOME": "/tmp", "TMPDIR": "/tmp", "RILLBASE_DATA_DIR": "/tmp/data"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*UNSHARED, "sh", "-c", closing(scratch), "sh", *command],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process, log
        finally:
            process.terminate()
            try:
                process.wait(90)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def command_of(part: str, port: int) -> list[str]:
    """Return the chart's command of a part, on this machine's Python, port and folder."""
    pods = dict(rendered("minimal").pods())
    (container,) = [container for container in containers(pods[part]) if container["name"] == part]
    here = {"python": sys.executable, "0.0.0.0": "127.0.0.1"}
    ports = {str(entry["containerPort"]): str(port) for entry in container.get("ports", [])}
    words = [str(word).replace("/var/lib/rillbase", "/tmp/data") for word in container["command"]]
    return [(here | ports).get(word, word) for word in words]


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@needs_namespaces
@pytest.mark.parametrize("part", ["app", "relay", "beat"])
def test_servers_get_ready_and_write_nowhere_else(part: str, tmp_path: Path) -> None:
    port = free_port()
    with running_read_only(command_of(part, port), tmp_path / "scratch") as (process, log):
        wait_until(
            lambda: is_ready(port) or process.poll() is not None,
            what=f"{part} to be ready",
            timeout_s=START_TIMEOUT_S,
        )
        assert process.poll() is None, log.read_text()
    assert "Read-only file system" not in log.read_text()


@needs_namespaces
def test_a_worker_reports_that_it_is_alive(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    mark = scratch / "data" / "ready"
    with running_read_only(command_of("worker", free_port()), scratch) as (process, log):
        wait_until(
            lambda: mark.exists() or process.poll() is not None,
            what="the worker to be ready",
            timeout_s=START_TIMEOUT_S,
        )
        assert process.poll() is None, log.read_text()
        first = mark.stat().st_mtime_ns
        wait_until(lambda: mark.stat().st_mtime_ns > first, what="a sign of life")
    assert "Read-only file system" not in log.read_text()


@needs_namespaces
def test_the_migrations_and_the_wait_for_them_end_well(tmp_path: Path) -> None:
    waiting = [sys.executable, "manage.py", "await_servers", "--storage"]
    for number, command in enumerate((command_of("migrations", 0), waiting)):
        with running_read_only(command, tmp_path / f"scratch{number}") as (process, log):
            assert process.wait(START_TIMEOUT_S) == 0, log.read_text()
