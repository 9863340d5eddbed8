"""A dataset's tables as DuckDB's views, at one state.

The authority's files are read by DuckDB. What is later is merged as for other queries
(`analytics.query.state_rows`) and takes the place of the authority's rows with the same keys. A
view has only the columns that the statement can refer to, so that no other column is merged.
Columns of ids are joined with the table of their ID-key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from analytics.query.files import QueryFile, ReadPlan
from analytics.query.filters import RowFilter
from analytics.query.id_keys import IdKey, IdKeys
from analytics.query.scan import ScanReader
from analytics.query.sql_text import identifier, literal_text
from analytics.query.state_rows import DUCKDB_TYPES, operations_at, rows_after
from analytics.rows.keys import Part, key_at
from analytics.schema import BY_ID, AnalyticsTable, TableView
from analytics.table_definitions import ID, KEY
from foundation.errors import FieldProblem, InvalidSql

#: Joins the names of a table and of one of its views, as in the Iceberg catalogue.
VIEW_SEPARATOR = "__"
#: Prefix of what statements cannot name.
_OWN = "stored "
_ARROW = f"{_OWN}arrow"


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table, or one of its views, under the name that statements use."""

    name: str
    table: AnalyticsTable
    view: TableView


def sql_tables(tables: Mapping[str, AnalyticsTable]) -> dict[str, SqlTable]:
    """Return all tables and views of a dataset by their names."""
    found = {name: SqlTable(name, table, table.primary) for name, table in tables.items()}
    for table in tables.values():
        for view in table.views:
            name = f"{table.name}{VIEW_SEPARATOR}{view.name}"
            found[name] = SqlTable(name, table, view)
    return found


def id_tables(needed: Collection[SqlTable], columns: Collection[str] | None) -> set[str]:
    """Return the tables of the ID-keys with which these tables are joined."""
    return {
        id_key
        for one in needed
        for column in _columns(one, columns)
        if (id_key := one.table.ids.get(column)) is not None
    }


def paths(plans: Mapping[str, ReadPlan]) -> list[str]:
    """Return the files that DuckDB itself reads."""
    return sorted({str(file.path) for plan in plans.values() for file in plan.authority})


class TableViews:
    """Creates the views of one statement."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        tables: Mapping[str, AnalyticsTable],
        plans: Mapping[str, ReadPlan],
        here: Mapping[str, str],
        columns: Collection[str] | None,
    ) -> None:
        """`here` has the paths by which DuckDB opens the authority's files."""
        self._connection = connection
        self._here = here
        self._tables = tables
        self._plans = plans
        self._columns = columns
        self._reader = ScanReader()
        self._created: set[str] = set()

    def create(self, needed: Collection[SqlTable]) -> None:
        for name in sorted(id_tables(needed, self._columns)):
            table = self._tables[name]
            stored = SqlTable(_OWN + name, table, table.view(BY_ID))
            self._create(stored, self._stored(stored, [*table.columns]))
        for one in needed:
            self._create(one, self._shown(one))

    def _create(self, one: SqlTable, query: str) -> None:
        self._connection.execute(f"CREATE VIEW {identifier(one.name)} AS {query}")

    def _shown(self, one: SqlTable) -> str:
        """Return a query for a table's columns, with keys instead of ids."""
        _check_case(one)
        columns = _columns(one, self._columns) or list(one.table.key)
        stored = self._stored(one, columns)
        joined = {column: one.table.ids[column] for column in columns if column in one.table.ids}
        if not joined:
            return stored
        aliases = {column: f"{_OWN}{place}" for place, column in enumerate(joined)}
        shown = ", ".join(
            self._key(joined[column], aliases[column], column)
            if column in joined
            else f"s.{identifier(column)}"
            for column in columns
        )
        joins = " ".join(
            f"LEFT JOIN {identifier(_OWN + id_key)} AS {identifier(aliases[column])}"
            f" ON s.{identifier(column)} = {identifier(aliases[column])}.{identifier(ID)}"
            for column, id_key in joined.items()
        )
        return f"SELECT {shown} FROM ({stored}) AS s {joins}"

    def _key(self, id_key: str, alias: str, column: str) -> str:
        """Return an expression for the key of an id; a key with parts is a struct."""
        at = identifier(alias)
        parts = [name for name in self._tables[id_key].columns if name not in (KEY, ID)]
        key = f"{at}.{identifier(KEY)}"
        if parts:
            members = ", ".join(f"{identifier(n)} := {at}.{identifier(n)}" for n in parts)
            key = f"CASE WHEN {key} IS NOT NULL THEN struct_pack({members}) END"
        return f"{key} AS {identifier(column)}"

    def _stored(self, one: SqlTable, columns: Sequence[str]) -> str:
        """Return a query for columns as they are stored, at the state."""
        plan, table = self._plans[one.table.name], one.table
        names = [name for name in table.columns if name in {*columns, *table.key}]
        operations = operations_at(
            plan, table, names, RowFilter(), self._reader, self._id_keys(plan)
        )
        files = [file for file in plan.authority if file.view == one.view.name]
        bounds = _bounds(operations, table.key[0]) if operations.num_rows else None
        untouched, touched = touched_files(files, bounds)
        parts = [self._files(untouched, one, columns)] if untouched else []
        if touched:
            parts.append(self._files_without(touched, one, columns, operations))
        if operations.num_rows:
            rows = rows_after(plan, table, names, operations, self._reader)
            parts.append(f"FROM {self._stores(f'rows {one.name}', rows.select([*columns]))}")
        return " UNION ALL ".join(parts) or _nothing(table, columns)

    def _files_without(
        self,
        files: Sequence[QueryFile],
        one: SqlTable,
        columns: Sequence[str],
        operations: pa.Table,
    ) -> str:
        """Return a query for the authority's rows on whose keys there are no operations."""
        key = one.table.key
        keys = self._stores(f"keys {one.name}", operations.select([*key]))
        same = " AND ".join(f"b.{identifier(n)} = k.{identifier(n)}" for n in key)
        base = self._files(files, one, [*dict.fromkeys([*columns, *key])])
        selected = ", ".join(f"b.{identifier(n)}" for n in columns)
        return f"SELECT {selected} FROM ({base}) AS b ANTI JOIN {keys} AS k ON {same}"

    def _files(self, files: Sequence[QueryFile], one: SqlTable, columns: Sequence[str]) -> str:
        """Return a query for columns of files. Old files lack columns that are newer."""
        schema = one.table.view_schema(one.view)
        found = self._reader.authority_files(files, one.view, schema, RowFilter())
        return " UNION ALL ".join(
            f"SELECT {_selected(one.table, columns, stored)} FROM {self._parquet(paths)}"
            for stored, paths in found.items()
        )

    def _parquet(self, paths: Sequence[Path]) -> str:
        names = ", ".join(literal_text(self._here[str(path)]) for path in paths)
        return f"read_parquet([{names}], hive_partitioning = false)"

    def _stores(self, name: str, rows: pa.Table) -> str:
        """Store rows as a table of DuckDB, and return its name as SQL.

        DuckDB could read them where they are, but does not support all filters there.
        """
        here = identifier(f"{_OWN}{name}")
        self._connection.register(_ARROW, rows)
        self._connection.execute(f"CREATE TEMP TABLE {here} AS FROM {identifier(_ARROW)}")
        self._connection.unregister(_ARROW)
        return here

    def _id_keys(self, plan: ReadPlan) -> IdKeys:
        return {
            name: IdKey(self._tables[name], id_plan, self._reader)
            for name, id_plan in plan.id_keys.items()
        }


def _columns(one: SqlTable, mentioned: Collection[str] | None) -> list[str]:
    """Return the columns of a table that a statement can refer to."""
    names = one.view.columns
    return [name for name in names if mentioned is None or name.lower() in mentioned]


def _check_case(one: SqlTable) -> None:
    """Raise `InvalidSql` for columns that differ only in case, which DuckDB ignores."""
    if len({name.lower() for name in one.view.columns}) < len(one.view.columns):
        detail = (
            f"The table {one.name!r} has columns whose names differ only in upper and lower case."
        )
        raise InvalidSql(detail, errors=[FieldProblem("/sql", "table", detail)])


def touched_files(
    files: Sequence[QueryFile], bounds: tuple[Part, Part] | None
) -> tuple[list[QueryFile], list[QueryFile]]:
    """Return the files without any of the operations' keys, and those that may have some.

    `bounds` are the least and the greatest first part of these keys; None: there are none.
    """
    if bounds is None:
        return [*files], []
    low, high = bounds
    touched = [
        file
        for file in files
        # The files of secondary views are sorted by other columns.
        if file.view != "" or (file.highest[0] >= low and file.lowest[0] <= high)  # type: ignore[operator]
    ]
    return [file for file in files if file not in touched], touched


def _bounds(operations: pa.Table, name: str) -> tuple[Part, Part]:
    """Return the least and greatest value of a column by which rows are sorted."""
    last = operations.num_rows - 1
    return key_at(operations, [name], 0)[0], key_at(operations, [name], last)[0]


def _selected(table: AnalyticsTable, columns: Sequence[str], stored: Collection[str]) -> str:
    """Return columns as SQL. Those that files do not have are null."""
    return ", ".join(
        identifier(name)
        if name in stored
        else f"NULL::{DUCKDB_TYPES[table.columns[name]]} AS {identifier(name)}"
        for name in columns
    )


def _nothing(table: AnalyticsTable, columns: Sequence[str]) -> str:
    return f"SELECT {_selected(table, columns, ())} WHERE false"
