"""DuckDB in a worker: one instance, which the template opens, and settings that a job locks.

The settings alone do not isolate a statement; the process does (`foundation.sandbox`). They keep
mistakes from getting that far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from analytics.query.sql_text import literal_text
from foundation.sandbox.template import WRITABLE

#: Set to false, in this order, before the configuration is locked.
_OFF = (
    "autoload_known_extensions",
    "autoinstall_known_extensions",
    "allow_community_extensions",
    "allow_persistent_secrets",
    "python_enable_replacements",
    "python_scan_all_frames",
    "enable_external_file_cache",
    "enable_external_access",
)


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What DuckDB may use. The kernel's limits are above these, and absolute."""

    memory_mib: int
    temporary_mib: int
    threads: int


def open_engine() -> duckdb.DuckDBPyConnection:
    """Open an instance without threads, so that a process that has it can fork."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET temp_directory = ''")
    # A view's files are looked at when it is created and when it is read.
    connection.execute("SET parquet_metadata_cache = true")
    # Loads what the first statement of a process would load.
    connection.execute("SELECT sum(x) FROM range(10) t(x)").fetchall()
    connection.execute("SELECT json_serialize_sql('SELECT 1')").fetchall()
    return connection


def configure(connection: duckdb.DuckDBPyConnection, limits: EngineLimits) -> None:
    """Apply the limits of a job. Files may still be named."""
    connection.execute(
        f"SET threads = {limits.threads};"
        f"SET memory_limit = '{limits.memory_mib}MiB';"
        f"SET temp_directory = '/proc/self/fd/{WRITABLE}';"
        f"SET max_temp_directory_size = '{limits.temporary_mib}MiB';"
        # Several threads store the rows that are not merged yet.
        "SET preserve_insertion_order = false"
    )


def allow_files(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> None:
    """Allow DuckDB to read these files, and nothing else."""
    allowed = f"SET allowed_paths = [{', '.join(map(literal_text, paths))}]"
    connection.execute("; ".join([allowed, *(f"SET {name} = false" for name in _OFF)]))


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the settings permanent. Results keep the order of the rows that they are made of."""
    connection.execute("SET preserve_insertion_order = true; SET lock_configuration = true")
