"""The disk of PostgreSQL's log, which holds nothing else, is full."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
import requests

from foundation.json_types import JsonObject
from tests.browser import Browser
from tests.launcher_command import reachable_directory
from tests.launcher_process import LauncherDirectory, RunningLauncher
from tests.small_disk import SmallDisk, small_disk
from tests.waiting import wait_until

SIZE_MIB = 384
#: How soon everything must work again after space was freed.
RECOVERY_S = 10.0


@pytest.fixture
def launcher_directory() -> Iterator[LauncherDirectory]:
    with reachable_directory() as folder:
        yield LauncherDirectory(folder)


@contextmanager
def _log_on_a_small_disk(launcher_directory: LauncherDirectory) -> Iterator[SmallDisk]:
    """Move a stopped installation's log to a separate disk."""
    log = launcher_directory.data / "postgres" / "data" / "pg_wal"
    with small_disk(launcher_directory.data.parent / "wal", SIZE_MIB) as disk:
        moved = disk.path / "pg_wal"
        # With owner and mode, which `shutil` does not copy.
        subprocess.run(["cp", "-a", log, moved], check=True)
        shutil.rmtree(log)
        log.symlink_to(moved)
        yield disk


class Client:
    """A client of the demo tenant."""

    def __init__(self, up: RunningLauncher) -> None:
        self._base = up.ready["url"]
        self._key = {"Authorization": f"Bearer {up.ready['api_key']}"}
        self._account = (up.ready["email"], up.ready["password"])
        self._call("POST", "/api/v1/tenants/demo/collections", {"name": "things"})

    def _call(self, method: str, path: str, body: JsonObject | None = None) -> requests.Response:
        return requests.request(method, self._base + path, json=body, headers=self._key, timeout=30)

    def write(self, size: int = 1) -> requests.Response:
        body: JsonObject = {"pad": secrets.token_hex(size)}
        return self._call("POST", "/v1/collections/things/documents", body)

    def read(self) -> int:
        return self._call("GET", "/v1/collections/things/documents?limit=1").status_code

    def sign_in(self) -> int:
        return Browser(self._base).log_in(*self._account).status_code


@pytest.mark.long
def test_only_writes_stop_and_recover_once_there_is_space(
    launcher_directory: LauncherDirectory,
) -> None:
    with launcher_directory.up() as up:
        pass
    up.process.wait()
    with _log_on_a_small_disk(launcher_directory) as disk:
        with launcher_directory.up() as up:
            client = Client(up)
            assert client.write().status_code == 201
            disk.fill()
            _writes_are_refused(client)
            assert client.read() == 200
            assert client.sign_in() == 200
            assert launcher_directory.services()["postgres"]["restarts"] == 0, (
                "the reserve came in time"
            )

            _postgresql_ends(launcher_directory, disk)
            assert client.write().status_code in (503, 507)

            disk.empty()
            wait_until(
                lambda: client.write().status_code == 201 and client.sign_in() == 200,
                what="everything to work again",
                timeout_s=RECOVERY_S,
            )
            disk.fill()
            _writes_are_refused(client)
        # With a full disk too, it is stopped in order.
        assert up.process.wait() == 0


def _writes_are_refused(client: Client) -> None:
    wait_until(lambda: client.write(1024).status_code == 507, what="writes to be refused")
    problem = client.write().json()
    assert problem["code"] == "storage_full"


def _postgresql_ends(launcher_directory: LauncherDirectory, disk: SmallDisk) -> None:
    """Use up the reserve as well, and write until PostgreSQL has no space for its log."""
    disk.fill()
    port = (
        (launcher_directory.data / "postgres" / "data" / "postmaster.pid")
        .read_text()
        .splitlines()[3]
    )
    password = json.loads((launcher_directory.data / "secrets.json").read_text())[
        "postgres_password"
    ]
    with (
        psycopg.connect(
            host="127.0.0.1", port=port, user="postgres", password=password, autocommit=True
        ) as admin,
        pytest.raises(psycopg.OperationalError),
    ):
        _write_log(admin)
    wait_until(
        lambda: launcher_directory.services()["postgres"]["restarts"] > 2,
        what="PostgreSQL to be started again and again",
    )


def _write_log(admin: psycopg.Connection) -> None:
    while True:
        admin.execute("SELECT pg_logical_emit_message(false, '', repeat('y', 1000000))")
