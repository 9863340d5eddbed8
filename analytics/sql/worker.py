"""Does one statement. Runs only in worker processes of `foundation.sandbox`.

The worker is in the dataset's folder, which it may read. The server asks twice: first what the
statement reads, which names the tables whose files the server then looks up; then for the result,
which follows as a stream.

    server  {"sql", "definition"}                      worker  {"tables"} or {"problem"}
    server  {"plans", "state", "parameters", …}        worker  {"ready"} or {"problem"} or {"gone"}
                                                       worker  bytes …, {"rows"} or {"problem"}

If Spark executes the statement, the worker says whether DuckDB would, and then reads the rows:

    server  {"engine": "spark", …}                     worker  {"columns"} or {"problem"}
    server  {"paths"}                                  worker  {"ready"} …
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, TypedDict, cast
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa

from analytics.query.plan_json import read_plan
from analytics.query.sql_text import literal_text
from analytics.rows import file_store
from analytics.schema import BY_ID, AnalyticsTable, tables_of
from analytics.sql.engine import EngineLimits, allow_files, configure, lock, open_engine
from analytics.sql.errors import as_api_error
from analytics.sql.output import ResultColumn, ResultWriter, StreamSink, rows_per_batch, writer_for
from analytics.sql.parameters import bound
from analytics.sql.syntax import StatementNeeds, check, read_tree
from analytics.sql.tables import SqlTable, TableViews, id_tables, paths, sql_tables
from analytics.sql.values import check_types, distinct_names
from documents.transfer.parquet import arrow_setup
from foundation.errors import ApiError
from foundation.json_types import JsonObject, JsonValue
from foundation.sandbox import messages
from foundation.sandbox.problems import problem_json

arrow_setup.load()
for _name in ("pyarrow.acero", "pyarrow.dataset"):
    import_module(_name)
_engine = open_engine()
#: Reads the rows that Spark has computed, once the other's settings are locked.
_engine_of_rows = open_engine()
#: Kept, since a worker cannot read the zone's file.
_UTC = ZoneInfo("UTC")


class _ExecuteRequest(TypedDict):
    """The second request of the server."""

    #: The files of the tables (`analytics.query.plan_json`).
    plans: dict[str, dict[str, Any]]
    state: int
    freshness_s: float
    #: What executes the statement: `duckdb`, which this process has, or `spark`.
    engine: str
    parameters: list[JsonValue] | dict[str, JsonValue]
    media_type: str
    limit: int
    limits: dict[str, int]


def warm_up() -> None:
    """Do what the first statement of a process would have to do, without starting a thread."""
    file_store.avoid_maps()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    _needs("SELECT 1", {})
    _engine.execute("SELECT 1").to_arrow_reader(1).read_all()


def execute(connection: socket.socket) -> None:
    """Do the statement that the server asks for."""
    try:
        _execute(connection)
    except FileNotFoundError:
        messages.send_reply(connection, {"gone": True})
    except (ApiError, duckdb.Error, MemoryError, OverflowError, pa.ArrowException) as error:
        messages.send_reply(connection, {"problem": problem_json(as_api_error(error))})


def _execute(connection: socket.socket) -> None:
    first, _ = messages.receive_request(connection)
    sql = str(first["sql"])
    tables = tables_of(str(first["definition"]))
    named = sql_tables(tables)
    needs = _needs(sql, named)
    needed = [named[name] for name in sorted(needs.tables)]
    messages.send_reply(connection, {"tables": _read_views(needed, needs)})
    request, _ = messages.receive_request(connection)
    typed = cast("_ExecuteRequest", request)
    parameters = bound(typed["parameters"])
    if typed["engine"] == "duckdb":
        _prepare(typed, tables, needed, needs)
        _stream(connection, typed, _engine.execute(sql, parameters))
        return
    # Spark has the rows; their columns are those that DuckDB gives the statement.
    _prepare({**typed, "plans": _without_files(typed["plans"])}, tables, needed, needs)
    columns = _engine.execute(sql, parameters).description
    messages.send_reply(connection, {"columns": len(columns)})
    reply, _ = messages.receive_request(connection)
    names, kinds = [name for name, *_ in columns], [str(kind) for _, kind, *_ in columns]
    files = [str(path) for path in cast("list[str]", reply["paths"])]
    _stream(connection, typed, _rows_of(files, kinds, EngineLimits(**typed["limits"])), names)


def _without_files(plans: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        table: {
            "authority": [],
            "later": [],
            "id_keys": {
                name: {"authority": [], "later": [], "lists": []} for name in plan["id_keys"]
            },
        }
        for table, plan in plans.items()
    }


def _rows_of(
    files: Sequence[str], kinds: Sequence[str], limits: EngineLimits
) -> duckdb.DuckDBPyConnection:
    """Return the rows of a result's files, which have a column `c0`, `c1` … for each type."""
    configure(_engine_of_rows, limits)
    opened = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in files]
    here = [f"/proc/self/fd/{number}" for number in opened]
    allow_files(_engine_of_rows, here)
    lock(_engine_of_rows)
    values = ", ".join(f"CAST(c{number} AS {kind})" for number, kind in enumerate(kinds))
    names = ", ".join(map(literal_text, here))
    return _engine_of_rows.execute(f"SELECT {values} FROM read_parquet([{names}])")


def _read_views(needed: Sequence[SqlTable], needs: StatementNeeds) -> JsonObject:
    """Return the tables that are read, each with its views that are."""
    views: dict[str, list[JsonValue]] = {}
    for one in needed:
        views.setdefault(one.table.name, []).append(one.view.name)
    for name in id_tables(needed, needs.columns):
        views.setdefault(name, []).append(BY_ID)
    return {**views}


def _needs(sql: str, named: Mapping[str, SqlTable]) -> StatementNeeds:
    row = _engine.execute(f"SELECT json_serialize_sql({literal_text(sql)})").fetchone()
    return check(sql, read_tree(sql, row[0] if row else "{}"), named)


def _prepare(
    request: _ExecuteRequest,
    tables: Mapping[str, AnalyticsTable],
    needed: Sequence[SqlTable],
    needs: StatementNeeds,
) -> None:
    """Create the views, and leave DuckDB nothing but their files."""
    plans = {name: read_plan(request["state"], one) for name, one in request["plans"].items()}
    configure(_engine, EngineLimits(**request["limits"]))
    opened = {path: os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths(plans)}
    # DuckDB opens them by descriptor, so permissions and removals since then do not matter.
    here = {path: f"/proc/self/fd/{number}" for path, number in opened.items()}
    allow_files(_engine, [*here.values()])
    TableViews(_engine, tables, plans, here, needs.columns).create(needed)
    lock(_engine)


def _stream(
    connection: socket.socket,
    request: _ExecuteRequest,
    result: duckdb.DuckDBPyConnection,
    names: Sequence[str] | None = None,
) -> None:
    """Send a result. `names` are those of its columns, if it does not name them itself."""
    media_type, limit = request["media_type"], request["limit"]
    names = distinct_names(names or [name for name, *_ in result.description])
    kinds = [str(kind) for _, kind, *_ in result.description]
    check_types(names, kinds)
    reader = result.to_arrow_reader(rows_per_batch(media_type))
    schema = pa.schema([pa.field(n, f.type) for n, f in zip(names, reader.schema, strict=True)])
    batches = _batches(reader, schema)
    first = next(batches, None)
    columns = [ResultColumn(name, kind) for name, kind in zip(names, kinds, strict=True)]
    sink = StreamSink(connection)
    head: JsonObject = {
        "state": request["state"],
        "freshness_s": request["freshness_s"],
        "engine": request["engine"],
    }
    writer = writer_for(media_type, sink, schema, columns, head)
    rows, more = _write(writer, first, limit)
    # What is wrong with the first rows is an error of the call. Later ones break the stream off.
    messages.send_reply(connection, {"ready": True})
    sink.open()
    while not more and (batch := next(batches, None)) is not None:
        written, more = _write(writer, batch, limit - rows)
        rows += written
    writer.finish(truncated=more)
    messages.send_reply(connection, {"rows": rows})


def _write(writer: ResultWriter, batch: pa.RecordBatch | None, limit: int) -> tuple[int, bool]:
    """Write at most `limit` rows. Return how many were written, and whether there are more."""
    if batch is None:
        return 0, False
    rows = batch.slice(0, limit)
    if rows.num_rows:
        writer.write(rows)
    return rows.num_rows, rows.num_rows < batch.num_rows


def _batches(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        if batch.num_rows:
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
