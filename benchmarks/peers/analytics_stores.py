"""Peers of analytics tables: the same rows in other stores, one transaction per upload.

Keys that analytics tables store as ids are stored as ids here, too: a table of keys has a sequence,
and each upload's new keys are inserted before its rows.
"""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.csv
from psycopg import sql

from rillbase_server.launcher.embedded import EmbeddedPostgres

#: Rows per INSERT.
INSERT_ROWS = 1_000
_TYPES = {
    "int32": "integer",
    "int64": "bigint",
    "string": "text",
    "double": "double precision",
    "timestamp": "timestamptz",
    "date": "date",
}
_HELD = """
SELECT sum(pg_table_size(oid)), sum(pg_indexes_size(oid)) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
"""
#: PostgreSQL's defaults; our own server's are smaller.
_WAL = {"max_wal_size": "1GB"}
Uploads = Iterable[Mapping[str, pa.Table]]


class Store(Protocol):
    """Takes uploads."""

    def take(self, upload: Mapping[str, pa.Table]) -> None:
        """Store an upload, durably and as a whole."""


def rate(store: Store, uploads: Uploads) -> float:
    """Return the rate of a store in rows per second, not counting the generation of rows."""
    rows, spent_s = 0, 0.0
    for upload in uploads:
        begin = time.perf_counter()
        store.take(upload)
        spent_s += time.perf_counter() - begin
        rows += sum(table.num_rows for table in upload.values())
    return rows / spent_s


def _named(column: str) -> str:
    """Return a column's name, quoted if SQL reserves it."""
    return f'"{column}"'


class _Sql:
    """Settings of both databases."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self._tables: Mapping[str, Any] = definition["tables"]
        self._id_keys: Mapping[str, str] = definition.get("id_keys", {})

    def _do(self, statement: str) -> None:
        raise NotImplementedError

    def _create_all(self, id_column: str) -> None:
        for name, kind in self._id_keys.items():
            column = id_column.format(name=name)
            self._do(f"CREATE TABLE {name} (key {_TYPES[kind]} PRIMARY KEY, id {column})")
        for name, table in self._tables.items():
            columns = ", ".join(
                f"{_named(column)} {'bigint' if kind.startswith('id:') else _TYPES[kind]}"
                for column, kind in table["columns"].items()
            )
            key = ", ".join(map(_named, table["key"]))
            self._do(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}))")
            for view, view_definition in table["views"].items():
                keys = ", ".join(map(_named, view_definition["key"]))
                self._do(f"CREATE INDEX {name}_{view} ON {name} ({keys})")

    def _enter(self, name: str) -> None:
        """Assign ids to the keys of `sent`, and insert the keys with them."""
        columns, joins = [], []
        ids = _ids(self._tables[name])
        for column in self._tables[name]["columns"]:
            if column not in ids:
                columns.append(f"sent.{_named(column)}")
                continue
            id_key = ids[column]
            self._do(
                f"INSERT INTO {id_key} (key) SELECT DISTINCT {_named(column)} FROM sent "
                "ON CONFLICT DO NOTHING"
            )
            columns.append(f"k_{column}.id")
            joins.append(f"JOIN {id_key} k_{column} ON k_{column}.key = sent.{_named(column)}")
        chosen = ", ".join(columns)
        self._do(f"INSERT INTO {name} SELECT {chosen} FROM sent {' '.join(joins)}")


class Postgres(_Sql):
    """PostgreSQL with the primary keys and, for each view, an index; by COPY or by INSERT."""

    def __init__(self, url: str, definition: Mapping[str, Any], *, by_copy: bool) -> None:
        super().__init__(definition)
        self._connection = psycopg.connect(url, autocommit=True)
        self._by_copy = by_copy
        self._create_all("bigint GENERATED ALWAYS AS IDENTITY UNIQUE")

    def close(self) -> None:
        self._connection.close()

    def sizes(self) -> tuple[int, int]:
        """Return the size of all tables, and of all their indexes, in bytes."""
        row = self._connection.execute(_HELD).fetchone()
        if row is None:
            raise RuntimeError("PostgreSQL returned no sizes")
        return int(row[0]), int(row[1])

    def take(self, upload: Mapping[str, pa.Table]) -> None:
        with self._connection.transaction():
            for name, rows in upload.items():
                if not _ids(self._tables[name]):
                    self._send(name, rows)
                    continue
                self._do(f"CREATE TEMP TABLE sent (LIKE {name}) ON COMMIT DROP")
                self._send("sent", rows)
                self._enter(name)
                self._do("DROP TABLE sent")

    def _do(self, statement: str) -> None:
        self._connection.execute(statement.encode())

    def _send(self, name: str, rows: pa.Table) -> None:
        if self._by_copy:
            with self._connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
                copy.write(_as_csv(rows))
            return
        for batch in rows.to_batches(INSERT_ROWS):
            columns = [column.to_pylist() for column in batch.columns]
            sent = [value for row in zip(*columns, strict=True) for value in row]
            self._connection.execute(_insert(name, batch.num_columns, batch.num_rows), sent)


@cache
def _insert(name: str, columns: int, rows: int) -> sql.Composed:
    row = sql.SQL("({})").format(sql.SQL(", ").join([sql.Placeholder()] * columns))
    values = sql.SQL(", ").join([row] * rows)
    return sql.SQL("INSERT INTO {} VALUES {}").format(sql.Identifier(name), values)


class DuckDb(_Sql):
    """DuckDB in a file, with the primary keys and an index for each view, from Arrow in memory."""

    def __init__(self, path: Path, definition: Mapping[str, Any]) -> None:
        super().__init__(definition)
        self._connection = duckdb.connect(str(path))
        for name in self._id_keys:
            self._do(f"CREATE SEQUENCE {name}_ids MINVALUE 0 START 0")
        self._create_all("bigint DEFAULT nextval('{name}_ids')")

    def close(self) -> None:
        self._connection.close()

    def take(self, upload: Mapping[str, pa.Table]) -> None:
        self._connection.begin()
        for name, rows in upload.items():
            self._connection.register("sent", rows)
            self._enter(name)
            self._connection.unregister("sent")
        self._connection.commit()

    def _do(self, statement: str) -> None:
        self._connection.execute(statement)


@contextmanager
def postgres(
    directory: Path, cache_mb: int, definition: Mapping[str, Any], *, by_copy: bool
) -> Iterator[Postgres]:
    """Start a separate durable server for this store, with a cache of so many MiB."""
    settings = {"shared_buffers": f"{cache_mb}MB", **_WAL}
    server = EmbeddedPostgres(directory, superuser_password="bench", settings=settings)
    with server, closing(Postgres(server.url, definition, by_copy=by_copy)) as store:
        yield store
    shutil.rmtree(directory)


@contextmanager
def duck_db(path: Path, definition: Mapping[str, Any]) -> Iterator[DuckDb]:
    store = DuckDb(path, definition)
    try:
        yield store
    finally:
        store.close()
        path.unlink()


def _ids(table: Mapping[str, Any]) -> dict[str, str]:
    kinds = table["columns"].items()
    return {column: kind.removeprefix("id:") for column, kind in kinds if kind.startswith("id:")}


def _as_csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(include_header=False))
    return sink.getvalue()
