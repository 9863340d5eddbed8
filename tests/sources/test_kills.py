"""Whichever process is killed at any time, nothing is lost and nothing is applied twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.sources.upstream import Database, FollowedCollection

ROOT = Path(__file__).resolve().parents[2]
KILLS = 25


class Process:
    """`manage.py background`, killed and started again at will."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        from tests.own_valkey import free_port

        arguments = ["manage.py", "background", "--port", str(free_port())]
        self._running = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=dict(os.environ)
        )

    def kill(self) -> None:
        if self._running is not None:
            self._running.send_signal(signal.SIGKILL)
            self._running.wait()


@contextmanager
def process() -> Iterator[Process]:
    process = Process()
    process.start()
    try:
        yield process
    finally:
        process.kill()


def confirmed_position(postgres_url: str, followed: FollowedCollection) -> int:
    with psycopg.connect(postgres_url) as ours:
        row = ours.execute(
            "SELECT confirmed FROM sources_source WHERE collection_id = %s AND is_copied",
            [followed.things.collection.pk],
        ).fetchone()
    return int(row[0]) if row else 0


def versions(followed: FollowedCollection) -> dict[str, int]:
    return {str(item["id"]): item["version"] for item in followed.items()}


@pytest.mark.long
def test_a_repeatedly_killed_process_resumes_at_its_position(
    server: str, database: Database, postgres_url: str
) -> None:
    """Count in rows while the process is killed: an extra version is a transaction that was applied
    twice.
    """
    from tests.sources.upstream import follow

    rng = random.Random(KILLS)
    database.run(
        "CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL)",
        "INSERT INTO counters SELECT k, 0 FROM generate_series(1, 5) k",
    )
    counters = follow(server, database, "counters")
    with process() as following:
        counters.until_count(5)
        counters.until_state("live")
        for _ in range(KILLS):
            before = confirmed_position(postgres_url, counters)
            for _ in range(rng.randint(20, 200)):
                database.run(f"UPDATE counters SET n = n + 1 WHERE id = {rng.randint(1, 5)}")
            # Killed while it works, and not before it has begun.
            wait_until(
                lambda seen=before: confirmed_position(postgres_url, counters) > seen,  # type: ignore[misc]
                what="the process to follow",
            )
            following.kill()
            following.start()
        rows = dict(database.rows("SELECT id, n FROM counters"))
        wait_until(
            lambda: (
                {key: document["n"] for key, document in counters.documents().items()}
                == {str(key): n for key, n in rows.items()}
            ),
            what="the documents to be the rows",
        )
    shown = counters.shown()
    assert (shown["copy_reason"], shown["rows_copied"]) == ("new", 5)
    # Of updates that were applied together only the last is a version.
    assert all(version <= rows[int(key)] + 1 for key, version in versions(counters).items())


def test_a_transaction_too_large_for_one_write_is_applied_once_bit_by_bit(
    server: str, database: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sources.following import progress, service, stream, transactions
    from tests.aggregates.background_service import running
    from tests.sources.upstream import follow

    monkeypatch.setattr(transactions, "MAX_WHOLE_CHANGES", 50)
    monkeypatch.setattr(stream, "PART_CHANGES", 40)
    monkeypatch.setattr(service, "RELOAD_S", 0.05)
    interrupted: list[progress.LogPosition] = []
    write = progress.SourceProgress.write

    async def write_or_break(
        self: progress.SourceProgress, operations: object, place: progress.LogPosition
    ) -> None:
        """Break off in the middle, as if the connection had been lost."""
        await write(self, operations, place)  # type: ignore[arg-type]
        if place.part == 120 and not interrupted:
            interrupted.append(place)
            raise OSError

    monkeypatch.setattr(progress.SourceProgress, "write", write_or_break)
    database.run("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (0, 0)")
    followed = follow(server, database, "t")
    with running(service.FollowerService):
        followed.until_state("live")
        database.run(
            "INSERT INTO t SELECT k, 0 FROM generate_series(1, 150) k",
            "UPDATE t SET n = n + 1 WHERE id > 100",
            "DELETE FROM t WHERE id > 140",
        )
        expected = {str(key): n for key, n in database.rows("SELECT id, n FROM t")}
        wait_until(
            lambda: (
                {key: document["n"] for key, document in followed.documents().items()} == expected
            ),
            what="the documents to be the rows",
        )
    assert interrupted
    assert versions(followed)["50"] == 1
    assert followed.shown()["copy_reason"] == "new"
