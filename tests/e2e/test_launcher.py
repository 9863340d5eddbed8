"""The whole of Rillbase, as `manage.py up` starts it: ready, killed, taken over, stopped."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import psycopg
import pytest

from rillbase_server.launcher.embedded import EmbeddedPostgres, EmbeddedValkey
from rillbase_server.launcher.process import identify
from tests.launched import Place
from tests.launcher_command import argv, environment, processes_below, reachable_directory, run
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


def test_one_command_starts_everything_and_stop_leaves_no_process_running(place: Place) -> None:
    with place.up() as launched:
        ready = launched.ready
        assert set(ready) == {"url", "email", "password", "tenant", "api_key"}
        assert all(ready.values())
        assert stat.S_IMODE(place.ready_file.stat().st_mode) == 0o600
        assert get(f"{ready['url']}/readyz") == 200

        # Only the grid may start later: services that need it report that they wait.
        wait_until(
            lambda: place.services()["grid"]["state"] == "ready", what="the grid", timeout_s=180
        )
        services = place.services()
        assert set(services) >= SERVICES
        assert {services[name]["state"] for name in SERVICES - {"prepare"}} == {"ready"}
        assert all(services[name]["memory_bytes"] for name in SERVICES - {"prepare"})

        upload(ready)
        wait_until(lambda: is_sorted(ready), what="the pipeline", timeout_s=180)

        second = run("up", "--data-dir", place.data)
        assert second.returncode == 12
        assert str(launched.process.pid) in second.stderr

        stopped = run("stop", "--data-dir", place.data)
        assert stopped.returncode == 0
        assert launched.process.wait(timeout=60) == 0
    text = launched.output.read_text()
    assert ready["api_key"] in text
    assert "\x1b" not in text
    assert "\r" not in text
    assert not place.ready_file.exists()
    assert processes_below(place.data) == []
    assert place.status()["running"] is False
    assert open_to_others(place.data) == []


def open_to_others(data: Path) -> list[str]:
    """Return the files below a data directory that group or others may read, write or list.

    Only the root directory may be traversed: when started as root, servers run under another
    account.
    """
    assert stat.S_IMODE(data.stat().st_mode) == (0o711 if os.geteuid() == 0 else 0o700)
    found = list(data.rglob("*"))
    assert {path.relative_to(data).parts[0] for path in found} >= {
        *("analytics", "logs", "node", "postgres", "run", "secrets.json", "valkey")
    }
    assert any(path.is_file() for path in (data / "analytics").rglob("*"))
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in found if not path.is_symlink()}
    return [f"{path} {mode:o}" for path, mode in modes.items() if mode & 0o077]


def test_a_new_launcher_takes_over_the_data_and_logins_of_a_killed_one(place: Place) -> None:
    with place.up("--workers", 2) as launched:
        before = launched.ready
        pids = [s["pid"] for s in place.services().values() if s["pid"]]
        assert len(pids) == len(SERVICES)  # all services except the one-shot, plus the launcher
        launched.process.send_signal(signal.SIGKILL)
        launched.process.wait()
    with place.up() as launched:
        after = launched.ready
        assert all(identify(pid) is None for pid in pids)
        assert {**after, "url": ""} == {**before, "url": ""}
        assert get(f"{after['url']}/readyz") == 200
        launched.process.send_signal(signal.SIGINT)
        assert launched.process.wait(timeout=60) == 0
    assert processes_below(place.data) == []


def test_external_servers_are_used_instead_of_embedded_ones(place: Place) -> None:
    with (
        reachable_directory() as elsewhere,
        EmbeddedPostgres(elsewhere / "postgres", superuser_password="external") as postgres,
        EmbeddedValkey(elsewhere / "valkey", password="external") as valkey,
    ):
        with psycopg.connect(postgres.url, autocommit=True) as admin:
            admin.execute("CREATE DATABASE ours")
        database = postgres.url.rpartition("/")[0] + "/ours"
        with place.up(DATABASE_URL=database, REDIS_URL=valkey.url) as launched:
            services = place.services()
            assert {"postgres", "valkey"}.isdisjoint(services)
            ready = launched.ready
            assert get(f"{ready['url']}/readyz") == 200
            whoami = f"{ready['url']}/v1/whoami"
            assert get(whoami, Authorization=f"Bearer {ready['api_key']}") == 200
        with psycopg.connect(database) as reader:
            assert reader.execute("SELECT slug FROM tenants_tenant").fetchall() == [("demo",)]
        assert run("stop", "--data-dir", place.data).returncode in (0, 3)
    assert processes_below(place.data) == []


def test_a_killed_web_server_is_restarted_and_the_restart_is_logged(place: Place) -> None:
    with place.up("--no-demo") as launched:
        url = launched.ready["url"]
        first = place.services()["web"]["pid"]
        os.kill(first, signal.SIGKILL)

        def back() -> bool:
            web = place.services()["web"]
            return bool(web["state"] == "ready" and web["pid"] != first)

        wait_until(back, what="the restart of the web server", timeout_s=120)
        assert place.services()["web"]["restarts"] == 1
        assert get(f"{url}/readyz") == 200
    assert "web killed by signal 9; restarting it" in launched.output.read_text()


def test_a_stop_during_startup_is_orderly(place: Place) -> None:
    arguments = argv("up", "--data-dir", place.data, "--port", 0)
    with subprocess.Popen(arguments, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.split()[:2] == [b"postgres", b"ready"]:
                break
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(timeout=60) == 0
    assert processes_below(place.data) == []
