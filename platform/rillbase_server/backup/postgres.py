"""PostgreSQL's part of a backup: a base backup, and segments of its write-ahead log."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, LiteralString
from urllib.parse import unquote, urlsplit

import psycopg

from rillbase_server.backup.problems import BackupProblem
from rillbase_server.launcher.postgres import binary

#: The name of a log segment: timeline, and position in it, as hexadecimal digits.
SEGMENT_NAME_LENGTH = 24
_COPY_BYTES = 1024 * 1024


def one_row(database: psycopg.Connection, query: LiteralString, *values: object) -> tuple[Any, ...]:
    """Return the only row of a query that always has one."""
    row = database.execute(query, values).fetchone()
    if row is None:
        raise BackupProblem(f"PostgreSQL returned nothing for {query}")
    return row


@contextmanager
def retained_wal(database: psycopg.Connection, name: str) -> Iterator[str]:
    """Keep the log from now on; yield the name of its first segment that is kept."""
    create = "SELECT lsn FROM pg_create_physical_replication_slot(%s, true, true)"
    (position,) = one_row(database, create, name)
    (first,) = one_row(database, "SELECT pg_walfile_name(%s::pg_lsn + 1)", position)
    try:
        yield str(first)
    finally:
        if not database.closed:
            database.execute("SELECT pg_drop_replication_slot(%s)", (name,))


def write_base_backup(database_url: str, label: str, target: BinaryIO) -> int:
    """Stream a base backup as a tar file; return its size."""
    parts = urlsplit(database_url)
    argv = [str(binary("pg_basebackup")), "--pgdata=-", "--format=tar", "--wal-method=none"]
    argv += ["--checkpoint=fast", f"--label={label}", "--no-password"]
    argv += [f"--host={parts.hostname}", f"--port={parts.port or 5432}"]
    argv += [f"--username={unquote(parts.username or '')}"]
    variables = {**os.environ, "PGPASSWORD": unquote(parts.password or "")}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(argv, env=variables, stdout=subprocess.PIPE, stderr=errors)
        with process:
            size = _copy(process, target)
        if process.returncode:
            errors.seek(0)
            stderr_text = errors.read().decode(errors="replace").strip()
            raise BackupProblem(f"pg_basebackup failed: {stderr_text}")
    return size


def _copy(process: subprocess.Popen[bytes], target: BinaryIO) -> int:
    if process.stdout is None:
        raise AssertionError("its output is a pipe")
    size = 0
    try:
        while chunk := process.stdout.read(_COPY_BYTES):
            size += target.write(chunk)
    except BaseException:
        process.kill()
        raise
    return size


def segments(database: psycopg.Connection, first: str, last: str) -> Sequence[str]:
    """Return the names of the log's segments from `first` to `last`."""
    rows = database.execute(
        "SELECT name FROM pg_ls_waldir() WHERE name BETWEEN %s AND %s AND length(name) = %s "
        "ORDER BY name",
        (first, last, SEGMENT_NAME_LENGTH),
    ).fetchall()
    return [str(row[0]) for row in rows]


def read_segment(database: psycopg.Connection, name: str) -> bytes:
    """Read a segment that PostgreSQL does not write to any more."""
    query = "SELECT pg_read_binary_file(%s)"
    # As text, a segment would be twice as large.
    row = database.execute(query, (f"pg_wal/{name}",), binary=True).fetchone()
    if row is None:
        raise BackupProblem(f"PostgreSQL's log has no segment {name}.")
    return bytes(row[0])


def verify_program() -> str | None:
    """Return the program that checks a base backup against its own manifest."""
    return shutil.which(str(binary("pg_verifybackup")))
