"""The usual alternative: each query is run on PostgreSQL every second.

The same documents are inserted at the same rate into an indexed table, in one transaction for all
that are due, while one connection per core runs prepared queries in pipelines without pauses. The
number that run in a second is the number that can be polled each second; the server has no other
load.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path

import psycopg

from rillbase_server.launcher.embedded import EmbeddedPostgres

_DOMAIN = 1_000_000_000
_BODY = "0123456789" * 25
_HELD = 100_000
#: Queries in flight on a connection.
_PIPELINE = 200
_QUERY = "SELECT id FROM documents WHERE random >= %s AND random < %s ORDER BY id"


@dataclass(frozen=True, slots=True)
class PollingResult:
    """What polling sustains."""

    queries_per_s: float
    writes_per_s: float


def measure(writes: int, seconds: float) -> PollingResult:
    """Write and poll for a while."""
    with _database() as url:
        over = multiprocessing.get_context("spawn").Event()
        with multiprocessing.get_context("spawn").Pool(1 + _pollers(), _share, (over,)) as pool:
            written = pool.apply_async(_write, (url, writes))
            polled = [pool.apply_async(_poll, (url, seconds)) for _ in range(_pollers())]
            rate = sum(poll.get() for poll in polled)
            over.set()
            return PollingResult(rate, written.get())


def _pollers() -> int:
    return os.cpu_count() or 1


class _Shared:
    """The parameters of this process."""

    over: Event


def _share(over: Event) -> None:
    _Shared.over = over


@contextmanager
def _database() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="rillbase-polling-") as directory:
        Path(directory).chmod(0o755)
        with EmbeddedPostgres(Path(directory) / "postgres", superuser_password="bench") as server:
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(
                    "CREATE TABLE documents (id bigserial PRIMARY KEY, random bigint, body text)"
                )
                connection.execute(
                    "INSERT INTO documents (random, body) SELECT (random() * %s)::bigint, %s "
                    "FROM generate_series(1, %s)",
                    (_DOMAIN, _BODY, _HELD),
                )
                connection.execute("CREATE INDEX ON documents (random)")
                connection.execute("ANALYZE documents")
            yield server.url


def _write(url: str, writes: int) -> float:
    """Insert at a steady rate; return the rate that was reached."""
    rng, sent, began = random.Random(3), 0, time.monotonic()
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        while not _Shared.over.is_set():
            due = int((time.monotonic() - began) * writes)
            if due == sent:
                time.sleep(0.001)
                continue
            with cursor.copy("COPY documents (random, body) FROM STDIN") as copy:
                for _ in range(due - sent):
                    copy.write_row((rng.randrange(_DOMAIN), _BODY))
            connection.commit()
            sent = due
    return sent / (time.monotonic() - began)


def _poll(url: str, seconds: float) -> float:
    """Run queries one after the other; return the rate per second."""
    rng, done, began = random.Random(os.getpid()), 0, time.monotonic()
    width = 17_000
    with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
        while (passed := time.monotonic() - began) < seconds:
            with connection.pipeline():
                cursors = []
                for _ in range(_PIPELINE):
                    low = rng.randrange(_DOMAIN)
                    cursors.append(connection.execute(_QUERY, (low, low + width)))
                for cursor in cursors:
                    cursor.fetchall()
            done += _PIPELINE
    return done / passed
