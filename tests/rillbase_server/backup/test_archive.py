"""The continuous archive: every segment once, in order, through interruptions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from rillbase_server.backup.archive import Archiver
from rillbase_server.backup.problems import BackupProblem
from rillbase_server.backup.repository import BackupRepository
from rillbase_server.launcher.embedded import EmbeddedPostgres
from tests.launcher_command import reachable_directory

KEY = bytes(range(32))
SEGMENT_BYTES = 16 * 1024 * 1024
#: The log that is not archived may not grow, so that one can be lost.
SETTINGS = {"max_slot_wal_keep_size": "96MB"}


@pytest.fixture(scope="module")
def postgres() -> Iterator[EmbeddedPostgres]:
    with (
        reachable_directory() as folder,
        EmbeddedPostgres(
            folder / "postgres", superuser_password="tests", durable=False, settings=SETTINGS
        ) as running,
    ):
        yield running


@pytest.fixture
def database(postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS numbers (n int)")
        yield connection
        connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


@pytest.fixture
def repository(tmp_path: Path) -> BackupRepository:
    return BackupRepository(tmp_path / "backups", KEY)


def write_segments(database: psycopg.Connection, count: int) -> None:
    for number in range(count):
        database.execute("INSERT INTO numbers VALUES (%s)", (number,))
        database.execute("SELECT pg_switch_wal()")


def are_contiguous(names: list[str]) -> bool:
    positions = [int(name[8:16], 16) * 256 + int(name[16:], 16) for name in names]
    return positions == list(range(positions[0], positions[0] + len(positions)))


def test_every_segment_is_stored_once_without_gaps(
    database: psycopg.Connection, repository: BackupRepository
) -> None:
    archiver = Archiver(repository, None)
    stored = archiver.run_once(database)
    write_segments(database, 2)
    # PostgreSQL itself writes a little now and then; without new content nothing is stored.
    rounds = [archiver.run_once(database) for _ in range(5)]
    assert rounds[-1] == []
    stored += [segment for segments in rounds for segment in segments]
    write_segments(database, 1)
    stored += archiver.run_once(database)
    assert list(repository.names("wal")) == stored
    assert are_contiguous(stored)
    with repository.read(f"wal/{stored[0]}") as file:
        assert len(file.read()) == SEGMENT_BYTES


def test_what_is_being_written_is_archived_too(
    database: psycopg.Connection, repository: BackupRepository
) -> None:
    archiver = Archiver(repository, None)
    archiver.run_once(database)
    database.execute("INSERT INTO numbers VALUES (20261126)")
    assert len(archiver.run_once(database)) == 1


def test_an_interrupted_archive_continues_without_a_gap(
    database: psycopg.Connection, repository: BackupRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    archiver = Archiver(repository, None)
    archiver.run_once(database)
    write_segments(database, 1)
    with monkeypatch.context() as patch:
        patch.setattr(repository, "write", _fail)
        with pytest.raises(OSError, match="disk"):
            archiver.run_once(database)
    write_segments(database, 1)
    Archiver(repository, None).run_once(database)
    assert are_contiguous(list(repository.names("wal")))


def _fail(_: str) -> None:
    raise OSError("the disk is full")


def test_a_lost_part_of_the_log_is_reported_and_the_archive_starts_again(
    database: psycopg.Connection, repository: BackupRepository
) -> None:
    archiver = Archiver(repository, None)
    archiver.run_once(database)
    write_segments(database, 12)
    database.execute("CHECKPOINT")
    with pytest.raises(BackupProblem, match="not archived yet"):
        archiver.run_once(database)
    write_segments(database, 1)
    assert archiver.run_once(database)


def test_the_log_of_a_restored_database_is_not_mixed_with_the_one_before(
    database: psycopg.Connection, repository: BackupRepository
) -> None:
    archiver = Archiver(repository, None)
    archiver.run_once(database)
    row = database.execute("SELECT pg_walfile_name(pg_current_wal_insert_lsn() + 1)").fetchone()
    assert row is not None
    with repository.write(f"wal/{row[0]}") as file:
        file.write(b"another history")
    write_segments(database, 1)
    with pytest.raises(BackupProblem, match="another segment"):
        archiver.run_once(database)
