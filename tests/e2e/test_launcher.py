"""The whole of Rillbase, as `manage.py up` starts it: ready, killed, taken over, stopped."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from rillbase_server.launcher.embedded import EmbeddedPostgres, EmbeddedValkey
from rillbase_server.launcher.preflight import WITHOUT_SPARK
from rillbase_server.launcher.process import identify
from tests.launcher_command import argv, environment, processes_below, reachable_directory, run
from tests.launcher_process import LauncherDirectory
from tests.waiting import wait_until

SERVICES = {"postgres", "valkey", "node", "prepare", "web", "worker", "background", "grid", "demo"}
pytestmark = pytest.mark.timeout(600)


def get(url: str, **headers: str) -> int:
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


def sign_in(link: str) -> str:
    """Sign in with a link, as its page does, and return the user's email address."""
    page, _, token = link.partition("/sign-in#token=")
    request = urllib.request.Request(
        f"{page}/api/v1/auth/login-link",
        data=json.dumps({"token": token}).encode(),
        headers={"Content-Type": "application/json", "Origin": page},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        email: str = json.load(answer)["user"]["email"]
    return email


def upload(ready: dict[str, str]) -> None:
    """Upload a row to the sample dataset."""
    request = urllib.request.Request(
        f"{ready['url']}/v1/datasets/visits/uploads",
        data=b'{"pages": {"page": "/new", "title": "New"}}',
        headers={
            "Authorization": f"Bearer {ready['api_key']}",
            "Content-Type": "application/x-ndjson",
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 201


def is_sorted(ready: dict[str, str]) -> bool:
    """Return whether the pipeline has processed all uploads to the sample dataset."""
    request = urllib.request.Request(
        f"{ready['url']}/v1/datasets/visits/pipeline",
        headers={"Authorization": f"Bearer {ready['api_key']}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bool(json.load(answer)["stages"]["unsorted"]["rows"] == 0)


@pytest.fixture
def temporary() -> Iterator[Path]:
    """An empty folder for temporary files. Sockets below it need a short path."""
    with tempfile.TemporaryDirectory(prefix="") as folder:
        # The demo's database runs under another account if the tests run as root.
        Path(folder).chmod(0o711)
        yield Path(folder)


def test_one_command_starts_everything_and_stop_leaves_no_process_running(
    launcher_directory: LauncherDirectory, temporary: Path
) -> None:
    with launcher_directory.up(TMPDIR=str(temporary)) as launched:
        ready = launched.ready
        assert set(ready) == {"url", "email", "password", "tenant", "api_key", "publishable_key"}
        assert all(ready.values())
        assert stat.S_IMODE(launcher_directory.ready_file.stat().st_mode) == 0o600
        assert get(f"{ready['url']}/readyz") == 200

        # Only the grid may start later: services that need it report that they wait.
        wait_until(
            lambda: launcher_directory.services()["grid"]["state"] == "ready",
            what="the grid",
            timeout_s=180,
        )
        services = launcher_directory.services()
        assert set(services) >= SERVICES
        states = {name: services[name]["state"] for name in SERVICES - {"prepare"}}
        assert set(states.values()) == {"ready"}, (states, launched.output.read_text())
        assert all(services[name]["memory_bytes"] for name in SERVICES - {"prepare"})

        (folder,) = temporary.iterdir()
        assert list(folder.glob("rillbase-demo-*")), "the demo's database"
        assert list(folder.glob("spark-*/blockmgr-*")), "files of Spark"
        upload(ready)
        wait_until(lambda: is_sorted(ready), what="the pipeline", timeout_s=180)

        link = run("sign-in-link", "--data-dir", launcher_directory.data)
        assert link.returncode == 0, link.stderr
        assert sign_in(link.stdout.strip()) == ready["email"]

        second = run("up", "--data-dir", launcher_directory.data)
        assert second.returncode == 12
        assert str(launched.process.pid) in second.stderr

        stopped = run("stop", "--data-dir", launcher_directory.data)
        assert stopped.returncode == 0
        assert launched.process.wait(timeout=60) == 0
    text = launched.output.read_text()
    assert ready["api_key"] in text
    assert ready["publishable_key"] in text
    assert "\x1b" not in text
    assert "\r" not in text
    assert not launcher_directory.ready_file.exists()
    assert processes_below(launcher_directory.data) == []
    assert list(temporary.iterdir()) == []
    assert launcher_directory.status()["running"] is False
    assert open_to_others(launcher_directory.data) == []


def open_to_others(data: Path) -> list[str]:
    """Return the files below a data directory that group or others may read, write or list.

    Only the root directory may be traversed: when started as root, servers run under another
    account.
    """
    assert stat.S_IMODE(data.stat().st_mode) == (0o711 if os.geteuid() == 0 else 0o700)
    files = list(data.rglob("*"))
    assert {path.relative_to(data).parts[0] for path in files} >= {
        *("analytics", "logs", "node", "postgres", "run", "secrets.json", "valkey")
    }
    assert any(path.is_file() for path in (data / "analytics").rglob("*"))
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in files if not path.is_symlink()}
    return [f"{path} {mode:o}" for path, mode in modes.items() if mode & 0o077]


def test_a_new_launcher_takes_over_the_data_and_logins_of_a_killed_one(
    launcher_directory: LauncherDirectory, temporary: Path
) -> None:
    with launcher_directory.up("--workers", 2, TMPDIR=str(temporary)) as launched:
        before = launched.ready
        pids = [s["pid"] for s in launcher_directory.services().values() if s["pid"]]
        assert len(pids) == len(SERVICES)  # all services except the one-shot, plus the launcher
        launched.process.send_signal(signal.SIGKILL)
        launched.process.wait()
    (left,) = temporary.iterdir()
    with launcher_directory.up(TMPDIR=str(temporary)) as launched:
        assert not left.exists()
        after = launched.ready
        assert all(identify(pid) is None for pid in pids)
        assert {**after, "url": ""} == {**before, "url": ""}
        assert get(f"{after['url']}/readyz") == 200
        launched.process.send_signal(signal.SIGINT)
        assert launched.process.wait(timeout=60) == 0
    assert processes_below(launcher_directory.data) == []
    assert list(temporary.iterdir()) == []


def test_external_servers_are_used_instead_of_embedded_ones(
    launcher_directory: LauncherDirectory,
) -> None:
    with (
        reachable_directory() as elsewhere,
        EmbeddedPostgres(elsewhere / "postgres", superuser_password="external") as postgres,
        EmbeddedValkey(elsewhere / "valkey", password="external") as valkey,
    ):
        with psycopg.connect(postgres.url, autocommit=True) as admin:
            admin.execute("CREATE DATABASE ours")
        database = postgres.url.rpartition("/")[0] + "/ours"
        servers = {"DATABASE_URL": database, "REDIS_URL": valkey.url}
        with launcher_directory.up(**servers, **WITHOUT_SPARK) as launched:
            services = launcher_directory.services()
            assert {"postgres", "valkey"}.isdisjoint(services)
            ready = launched.ready
            assert get(f"{ready['url']}/readyz") == 200
            whoami = f"{ready['url']}/v1/whoami"
            assert get(whoami, Authorization=f"Bearer {ready['api_key']}") == 200
        with psycopg.connect(database) as reader:
            assert reader.execute("SELECT slug FROM tenants_tenant").fetchall() == [("demo",)]
        assert run("stop", "--data-dir", launcher_directory.data).returncode in (0, 3)
    assert processes_below(launcher_directory.data) == []


def test_a_killed_web_server_is_restarted_and_the_restart_is_logged(
    launcher_directory: LauncherDirectory,
) -> None:
    with launcher_directory.up("--no-demo", **WITHOUT_SPARK) as launched:
        url = launched.ready["url"]
        first = launcher_directory.services()["web"]["pid"]
        os.kill(first, signal.SIGKILL)

        def is_back() -> bool:
            web = launcher_directory.services()["web"]
            return bool(web["state"] == "ready" and web["pid"] != first)

        wait_until(is_back, what="the restart of the web server", timeout_s=120)
        assert launcher_directory.services()["web"]["restarts"] == 1
        assert get(f"{url}/readyz") == 200
    assert "web killed by signal 9; restarting it" in launched.output.read_text()


def test_a_stop_during_startup_is_orderly(launcher_directory: LauncherDirectory) -> None:
    arguments = argv("up", "--data-dir", launcher_directory.data, "--port", 0)
    with subprocess.Popen(arguments, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.split()[:2] == [b"postgres", b"ready"]:
                break
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(timeout=60) == 0
    assert processes_below(launcher_directory.data) == []
