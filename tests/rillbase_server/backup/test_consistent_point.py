"""The point of a backup: writes wait while the storage node takes its checkpoint."""

from __future__ import annotations

import threading
from uuid import uuid4

import psycopg
import pytest

from rillbase_server.backup import consistent_point
from rillbase_server.backup.consistent_point import take_point
from rillbase_server.backup.problems import BackupProblem
from tests.documents.outbox.sql_writer import SqlWriter
from tests.waiting import wait_until

NAME = "rillbase_test"


def waiting_for_locks(database: psycopg.Connection) -> int:
    row = database.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
    assert row is not None
    return int(row[0])


def test_a_write_waits_until_the_consistent_point_exists(postgres_url: str) -> None:
    writer = SqlWriter(postgres_url)
    written = threading.Event()

    def write() -> None:
        writer.write(1)
        written.set()

    thread = threading.Thread(target=write)

    def checkpoint() -> str:
        thread.start()
        with psycopg.connect(postgres_url, autocommit=True) as observer:
            wait_until(lambda: waiting_for_locks(observer) > 0, what="the write to wait")
        assert not written.is_set()
        return f"/checkpoints/{uuid4()}"

    with psycopg.connect(postgres_url, autocommit=True) as database:
        point = take_point(database, NAME, checkpoint)
    thread.join()
    assert written.is_set()
    assert point.checkpoint is not None
    assert len(point.segment) == 24


def test_the_point_waits_for_a_transaction_that_has_written(postgres_url: str) -> None:
    writer = SqlWriter(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as database:
        with writer.transaction() as transaction:
            transaction.write(1, b"body")
            taken = threading.Event()

            def take() -> None:
                take_point(database, NAME, None)
                taken.set()

            thread = threading.Thread(target=take)
            thread.start()
            with psycopg.connect(postgres_url, autocommit=True) as observer:
                wait_until(lambda: waiting_for_locks(observer) > 0, what="the point to wait")
            assert not taken.is_set()
        thread.join()
        assert taken.is_set()


def test_a_failure_to_create_a_consistent_point_is_reported_and_blocks_nothing(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consistent_point, "LOCK_TIMEOUT_MS", 20)
    monkeypatch.setattr(consistent_point, "ATTEMPTS", 2)
    monkeypatch.setattr(consistent_point, "PAUSE_S", 0.0)
    writer = SqlWriter(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as database:
        with writer.transaction() as transaction:
            transaction.write(1, b"body")
            with pytest.raises(BackupProblem, match="could not be held back"):
                take_point(database, NAME, None)
        writer.write(2)
