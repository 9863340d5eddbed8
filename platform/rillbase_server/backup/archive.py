"""The continuous archive of PostgreSQL's log, for recovery to any time after a backup.

A replication slot keeps each segment until it is stored here, through restarts of both sides. A
segment that is being written is closed once it is `interval_s` old, so at most that much is lost
with the machine. Files of datasets are stored meanwhile, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from rillbase_server.backup.files import store_files
from rillbase_server.backup.installation import RunningInstallation
from rillbase_server.backup.postgres import one_row, read_segment, segments
from rillbase_server.backup.problems import BackupProblem
from rillbase_server.backup.repository import BackupRepository

SLOT = "rillbase_archive"
RETRY_S = 5.0
Report = Callable[[str], None]

# At the boundary of two segments, `pg_walfile_name` names the one before.
_CREATE = "SELECT pg_create_physical_replication_slot(%s, true)"
_STATE = (
    "SELECT wal_status = 'lost', pg_walfile_name(restart_lsn + 1), "
    "pg_current_wal_insert_lsn() - restart_lsn FROM pg_replication_slots WHERE slot_name = %s"
)
#: Nothing happens if the current segment is empty.
_SWITCH = "SELECT pg_switch_wal()"
_CURRENT = "SELECT pg_walfile_name(pg_current_wal_insert_lsn() + 1)"
_END = (
    "SELECT segment_number * setting::bigint + setting::bigint + '0/0'::pg_lsn "
    "FROM pg_split_walfile_name(%s), pg_settings WHERE name = 'wal_segment_size'"
)


class Archiver:
    """Stores closed segments, in order."""

    def __init__(self, repository: BackupRepository, analytics: Path | None) -> None:
        self._repository = repository
        self._analytics = analytics

    def run_once(self, database: psycopg.Connection) -> list[str]:
        """Close the current segment if it has content, and store what is closed."""
        first, waiting_bytes = self._position(database)
        if not waiting_bytes:
            return []
        if self._analytics:
            # Before the log that names them.
            store_files(self._repository, self._analytics)
        one_row(database, _SWITCH)
        (current,) = one_row(database, _CURRENT)
        closed = [name for name in segments(database, first, str(current)) if name < str(current)]
        for segment in closed:
            self._store(database, segment)
            (end,) = one_row(database, _END, segment)
            try:
                one_row(database, "SELECT pg_replication_slot_advance(%s, %s)", SLOT, end)
            except psycopg.errors.ObjectNotInPrerequisiteState:
                raise self._lost(database) from None
        return closed

    def _position(self, database: psycopg.Connection) -> tuple[str, int]:
        """Return the first segment that is not stored, and how much was written since."""
        row = database.execute(_STATE, (SLOT,)).fetchone()
        if row is None:
            database.execute(_CREATE, (SLOT,))
            row = one_row(database, _STATE, SLOT)
        is_lost, first, waiting_bytes = row
        if is_lost:
            raise self._lost(database)
        return str(first), int(waiting_bytes)

    def _lost(self, database: psycopg.Connection) -> BackupProblem:
        """Start again after the gap."""
        database.execute("SELECT pg_drop_replication_slot(%s)", (SLOT,))
        return BackupProblem(
            "PostgreSQL has removed parts of its log that were not archived yet.",
            "The archive starts again. Create a backup: times before it cannot be restored.",
        )

    def _store(self, database: psycopg.Connection, segment: str) -> None:
        name, content = f"wal/{segment}", read_segment(database, segment)
        if not self._repository.has(name):
            with self._repository.write(name) as file:
                file.write(content)
            return
        with self._repository.read(name) as file:
            stored = file.read()
        if stored != content:
            raise BackupProblem(
                f"The archive has another segment {segment}, of a database that was restored.",
                "Use a new repository for each restored installation.",
            )


def archive(
    installation: RunningInstallation,
    repository: BackupRepository,
    interval_s: float,
    report: Report,
) -> None:
    """Archive until interrupted, through restarts of PostgreSQL."""
    archiver = Archiver(repository, installation.analytics)
    while True:
        try:
            with psycopg.connect(installation.database_url, autocommit=True) as database:
                while True:
                    for segment in archiver.run_once(database):
                        report(f"archived {segment}")
                    time.sleep(interval_s)
        except psycopg.OperationalError as error:
            report(f"PostgreSQL is unavailable: {error}")
            time.sleep(RETRY_S)
