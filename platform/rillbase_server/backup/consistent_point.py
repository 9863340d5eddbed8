"""The moment that a backup shows, in PostgreSQL and in the storage node.

Two servers have no common clock, so writes to documents are held back while the storage node takes
its checkpoint and a named restore point is written to PostgreSQL's log: a few milliseconds. Suppose
that a client published to a topic and then wrote a document, or the other way around, each after
the acknowledgement of the one before. Then a backup that contains the second contains the first.

Proof: let documents be held back during [a, b], the checkpoint be at c and the restore point at r,
with a < c < r < b. No document is committed in [a, b]. If the document is in the backup, it was
committed before r, hence before a, hence the publication was acknowledged before a < c. If the
publication is in the checkpoint, it was made before c, hence the document was committed before c,
hence before a < r.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import psycopg

from rillbase_server.backup.postgres import one_row
from rillbase_server.backup.problems import BackupProblem

#: Every write of a document inserts into the first; the others define what the node holds.
_HELD_BACK = (
    "documents_outbox",
    "documents_collection",
    "storage_engine_topic",
    "aggregates_aggregate",
)
LOCK_TIMEOUT_MS = 2_000
ATTEMPTS = 15
PAUSE_S = 1.0


@dataclass(frozen=True)
class ConsistentPoint:
    """The point, and the segment of PostgreSQL's log that contains it."""

    restore_point: str
    at: datetime
    segment: str
    #: Where the storage node's checkpoint is, if there is a node.
    checkpoint: str | None
    held_s: float


def take_point(
    database: psycopg.Connection, restore_point: str, checkpoint: Callable[[], str] | None
) -> ConsistentPoint:
    """Hold back writes, take the checkpoint, and mark the point in PostgreSQL's log."""
    for _ in range(ATTEMPTS):
        try:
            return _take(database, restore_point, checkpoint)
        except psycopg.errors.LockNotAvailable:
            # A long transaction is in progress. Other writers continue meanwhile.
            time.sleep(PAUSE_S)
    raise BackupProblem(
        "Writes could not be held back: transactions of several seconds follow one another.",
        "Try again when fewer large transactions are written.",
    )


def _take(
    database: psycopg.Connection, restore_point: str, checkpoint: Callable[[], str] | None
) -> ConsistentPoint:
    with database.transaction():
        database.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
        database.execute(f"LOCK TABLE {', '.join(_HELD_BACK)} IN SHARE MODE")
        start_s = time.monotonic()
        path = checkpoint() if checkpoint else None
        at, segment = one_row(
            database,
            "SELECT clock_timestamp(), pg_walfile_name(pg_create_restore_point(%s))",
            restore_point,
        )
        held_s = time.monotonic() - start_s
    # This also writes everything before it to disk, so that the segment can be read.
    database.execute("SELECT pg_switch_wal()")
    return ConsistentPoint(restore_point, at, str(segment), path, held_s)
