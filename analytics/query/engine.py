"""DuckDB in this process, for statements that are generated here.

They contain no text of callers, whose values are parameters. A query has an instance of its own
while it runs, with the memory of one query. Opening an instance takes longer than reading a row, so
some are kept. One thread adds numbers in one order, so a state that is queried again has the same
sums, to the last bit.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import duckdb
import pyarrow as pa

from analytics.query.grouping import SUM_OVERFLOW
from analytics.query.scan import MAX_BYTES
from analytics.query.sql_text import Sql, columns, identifier, literal_text, stored_name
from foundation.errors import QueryTooExpensive, SumOverflow

_SETTINGS = (
    "TimeZone = 'UTC'",
    "temp_directory = ''",
    "enable_external_file_cache = false",
    "parquet_metadata_cache = true",
    "autoload_known_extensions = false",
    "autoinstall_known_extensions = false",
    "allow_community_extensions = false",
    "python_enable_replacements = false",
    "lock_configuration = true",
)
_ANY_NUMBER = 2**62
_PATTERN = re.compile(r"[*?\[{]")
#: Instances that are not in use.
_idle: deque[duckdb.DuckDBPyConnection] = deque(maxlen=4)
_TOO_LARGE = (
    f"The query would have to hold more than {MAX_BYTES} bytes of rows; filter by the key, or "
    "select fewer columns."
)


class QueryEngine:
    """One query's use of DuckDB."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, opened: ExitStack) -> None:
        self._connection = connection
        self._opened = opened
        self._names = count()
        self._paths: list[Path] = []

    def table(self, rows: pa.Table) -> str:
        """Return the SQL of a relation with these rows."""
        name = f"rows {next(self._names)}"
        self._connection.register(
            name, rows.rename_columns([stored_name(n) for n in rows.column_names])
        )
        self._opened.callback(self._connection.unregister, name)
        # Filters do not pass a limit: in Arrow's tables, DuckDB cannot evaluate all of them.
        return f"(FROM {identifier(name)} LIMIT {_ANY_NUMBER})"

    def files(self, paths: Sequence[Path]) -> str:
        """Return the SQL of a relation with the rows of files of the same columns."""
        self._paths += paths
        names = ", ".join(literal_text(self._name_of(path)) for path in paths)
        return f"read_parquet([{names}], hive_partitioning = false)"

    def _name_of(self, path: Path) -> str:
        if not _PATTERN.search(str(path)):
            return str(path)
        # DuckDB takes the name for a pattern, but not that of the descriptor.
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._opened.callback(os.close, number)
        return f"/proc/self/fd/{number}"

    def rows(self, sql: Sql, schema: pa.Schema) -> pa.Table:
        """Return the columns of a schema of the rows of a query."""
        text = f"SELECT {columns(schema.names)} FROM ({sql.text})"
        try:
            reader = self._connection.execute(text, sql.parameters).to_arrow_reader()
            batches, size = [], 0
            for batch in reader:
                size += batch.nbytes
                if size > MAX_BYTES:
                    raise QueryTooExpensive(_TOO_LARGE)
                batches.append(batch)
        except (duckdb.OutOfMemoryException, MemoryError):
            raise QueryTooExpensive(_TOO_LARGE) from None
        except duckdb.IOException:
            for path in self._paths:
                path.stat()  # raises `FileNotFoundError` if the file has been removed since
            raise
        except duckdb.InvalidInputException as error:
            _, overflow, name = str(error).partition(SUM_OVERFLOW)
            if not overflow:
                raise
            raise SumOverflow(f"The sum of {name} does not fit into 64 bits.") from None
        rows = pa.Table.from_batches(batches, reader.schema)
        return rows.rename_columns(schema.names).cast(schema)


@contextmanager
def query_engine() -> Iterator[QueryEngine]:
    """Lend an instance to one query."""
    connection = _lend()
    with ExitStack() as opened:
        yield QueryEngine(connection, opened)
    # After an error, an instance is not used again.
    _idle.append(connection)


def _lend() -> duckdb.DuckDBPyConnection:
    try:
        return _idle.pop()
    except IndexError:
        return _new_instance()


def _new_instance() -> duckdb.DuckDBPyConnection:
    memory = f"{MAX_BYTES >> 20}MiB"
    connection = duckdb.connect(config={"threads": 1, "memory_limit": memory})
    for setting in _SETTINGS:
        connection.execute(f"SET {setting}")
    return connection
