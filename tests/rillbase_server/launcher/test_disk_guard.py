"""Writes stop before the disk is full, and go on once there is room."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rillbase_server.launcher import disk_guard
from rillbase_server.launcher.data_directory import MIB, DataDirectory
from rillbase_server.launcher.disk_guard import (
    DiskGuard,
    DiskState,
    GuardAction,
    PostgresWrites,
    decide,
    reserve_bytes,
)
from rillbase_server.launcher.embedded import EmbeddedPostgres
from rillbase_server.launcher.problems import LauncherProblem
from tests.launcher_command import reachable_directory
from tests.small_disk import SmallDisk, small_disk
from tests.waiting import wait_until

RESERVE = 64 * MIB


@pytest.mark.parametrize(
    ("disk", "expected"),
    [
        (DiskState(1_000 * MIB, RESERVE, is_reserved=True, is_stopped=False), GuardAction.NONE),
        (DiskState(1_000 * MIB, RESERVE, is_reserved=False, is_stopped=False), GuardAction.RESERVE),
        (DiskState(159 * MIB, RESERVE, is_reserved=False, is_stopped=False), GuardAction.NONE),
        (DiskState(32 * MIB, RESERVE, is_reserved=True, is_stopped=False), GuardAction.NONE),
        (DiskState(31 * MIB, RESERVE, is_reserved=True, is_stopped=False), GuardAction.STOP),
        (DiskState(0, RESERVE, is_reserved=False, is_stopped=False), GuardAction.STOP),
        (DiskState(0, RESERVE, is_reserved=False, is_stopped=True), GuardAction.NONE),
        # What the reserve gave back is not enough to go on.
        (DiskState(95 * MIB, RESERVE, is_reserved=False, is_stopped=True), GuardAction.NONE),
        (DiskState(160 * MIB, RESERVE, is_reserved=False, is_stopped=True), GuardAction.RESUME),
    ],
)
def test_the_action_follows_from_the_free_space(disk: DiskState, expected: GuardAction) -> None:
    assert decide(disk) is expected


def test_the_error_names_a_reserve_that_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RILLBASE_DISK_RESERVE_MIB", "much")
    with pytest.raises(LauncherProblem, match="RILLBASE_DISK_RESERVE_MIB"):
        reserve_bytes()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 256) as disk:
        yield disk


def test_a_full_disk_releases_the_reserve_and_an_empty_one_restores_it(
    small: SmallDisk,
) -> None:
    directory = DataDirectory(small.path)
    directory.create()
    data = directory.postgres / "data"
    data.mkdir(parents=True)
    reports: list[str] = []
    guard = DiskGuard(
        directory,
        PostgresWrites(data, None),
        reload=lambda: reports.append("reload"),
        retry=lambda: None,
        report=lambda message, _good: reports.append(message),
    )
    guard.check()
    assert directory.reserve.stat().st_blocks * 512 >= RESERVE

    small.fill()
    guard.check()
    assert directory.write_stop.exists()
    assert small.free_bytes >= RESERVE - MIB
    assert (data / "rillbase.conf").read_text() == "default_transaction_read_only = on\n"
    assert reports[0] == "reload"
    assert "writes are rejected until 160 MiB are free" in reports[1]
    guard.check()
    assert len(reports) == 2, "said once"

    small.empty()
    guard.check()
    assert not directory.write_stop.exists()
    assert directory.reserve.stat().st_blocks * 512 >= RESERVE
    assert (data / "rillbase.conf").read_text() == "default_transaction_read_only = off\n"
    assert reports[2] == "reload"
    assert "writes are accepted" in reports[3]


def test_a_log_on_a_separate_disk_has_a_reserve_and_stops_writes(
    small: SmallDisk, tmp_path: Path
) -> None:
    directory = DataDirectory(tmp_path / "data")
    directory.create()
    data = directory.postgres / "data"
    data.mkdir(parents=True)
    (data / "pg_wal").symlink_to(small.path)
    reserve = small.path / "rillbase.reserve"
    retried: list[bool] = []
    guard = DiskGuard(
        directory,
        PostgresWrites(data, None),
        reload=lambda: None,
        retry=lambda: retried.append(directory.write_stop.exists()),
        report=lambda _message, _good: None,
    )
    guard.check()
    assert directory.reserve.exists()
    assert reserve.stat().st_blocks * 512 >= RESERVE

    small.fill()
    guard.check()
    assert directory.write_stop.exists()
    assert small.free_bytes >= RESERVE - MIB
    assert retried == [True], "PostgreSQL may have ended for want of space, and has some now"

    small.empty()
    guard.check()
    assert not directory.write_stop.exists()
    assert reserve.exists()
    assert len(retried) == 2


async def test_the_guard_checks_repeatedly(
    small: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_guard, "POLL_S", 0.01)
    directory = DataDirectory(small.path)
    directory.create()
    stopped = asyncio.Event()
    guard = DiskGuard(
        directory,
        PostgresWrites(directory.postgres / "data", None),
        reload=lambda: None,
        retry=lambda: None,
        report=lambda _message, good: None if good else stopped.set(),
    )
    watching = asyncio.create_task(guard.run())
    small.fill()
    async with asyncio.timeout(20):
        await stopped.wait()
    watching.cancel()


def test_stopped_writes_still_allow_reads_and_housekeeping() -> None:
    with (
        reachable_directory() as folder,
        EmbeddedPostgres(folder / "postgres", superuser_password="x", durable=False) as postgres,
        psycopg.connect(postgres.url, autocommit=True) as application,
        psycopg.connect(postgres.url, autocommit=True) as admin,
    ):
        application.execute("CREATE TABLE rows AS SELECT 1 AS a")
        admin.execute("CREATE ROLE housekeeping LOGIN PASSWORD 'x'")
        admin.execute("ALTER ROLE housekeeping SET default_transaction_read_only = off")
        admin.execute("GRANT ALL ON rows TO housekeeping")
        keeper = make_conninfo(postgres.url, user="housekeeping", password="x")

        postgres.cluster.writes.set(stopped=True)
        os.kill(postgres.pid, signal.SIGHUP)
        wait_until(lambda: _default(application) == "on", what="the stop of writes")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            application.execute("INSERT INTO rows VALUES (2)")
        assert application.execute("SELECT count(*) FROM rows").fetchone() == (1,)
        with psycopg.connect(keeper, autocommit=True) as housekeeping:
            housekeeping.execute("INSERT INTO rows VALUES (3)")

        postgres.cluster.writes.set(stopped=False)
        os.kill(postgres.pid, signal.SIGHUP)
        wait_until(lambda: _default(application) == "off", what="writes to go on")
        application.execute("INSERT INTO rows VALUES (2)")


def _default(connection: psycopg.Connection) -> str:
    row = connection.execute("SHOW default_transaction_read_only").fetchone()
    assert row is not None
    return str(row[0])
