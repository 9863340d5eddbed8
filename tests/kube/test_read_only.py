"""Our programs need to write nowhere but to the two folders that the chart gives them.

Each runs with the command of the chart, in a mount namespace in which everything else is read-only.
"""

from __future__ import annotations

import os
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

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 240.0
#: Inside of the namespace `/tmp` is the test's own folder; so is what the chart mounts below /var.
CLOSED = 'mount --bind "$1" /tmp && mount -o remount,ro,bind / && shift && exec "$@"'


UNSHARED = ("unshare", "--mount", "--propagation", "private")


def _may_close() -> bool:
    command = [*UNSHARED, "mount", "-o", "remount,ro,bind", "/"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


needs_namespaces = pytest.mark.skipif(not _may_close(), reason="no mount namespace can be made")


@contextmanager
def closed(command: list[str], scratch: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run a program that can write to `scratch` only; yields it and its output."""
    (scratch / "data").mkdir(parents=True)
    log = scratch.with_suffix(".log")
    environment = {**os.environ, "HOME": "/tmp", "TMPDIR": "/tmp", "RILLBASE_DATA_DIR": "/tmp/data"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*UNSHARED, "sh", "-c", CLOSED, "sh", str(scratch), *command],
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
    (container,) = [each for each in containers(pods[part]) if each["name"] == part]
    here = {"python": sys.executable, "0.0.0.0": "127.0.0.1"}
    ports = {str(each["containerPort"]): str(port) for each in container.get("ports", [])}
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
    with closed(command_of(part, port), tmp_path / "scratch") as (process, log):
        wait_until(
            lambda: is_ready(port) or process.poll() is not None,
            what=f"{part} to be ready",
            timeout_s=START_TIMEOUT_S,
        )
        assert process.poll() is None, log.read_text()
    assert "Read-only file system" not in log.read_text()


@needs_namespaces
def test_a_worker_gives_signs_of_life(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    mark = scratch / "data" / "ready"
    with closed(command_of("worker", free_port()), scratch) as (process, log):
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
        with closed(command, tmp_path / f"scratch{number}") as (process, log):
            assert process.wait(START_TIMEOUT_S) == 0, log.read_text()
