"""The rows of a table at a state: the authority, and later operations.

Later operations are first merged to one per key. DuckDB reads the rows without an operation from
the authority's files. If an operation leaves columns unchanged, they are read from the authority's
row. The filter is applied to changed rows only once they are complete, since an operation may
change whether a row matches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from analytics.query.engine import QueryEngine
from analytics.query.files import QueryFile, ReadPlan
from analytics.query.filters import RowFilter, near_values
from analytics.query.id_keys import IdKeys
from analytics.query.scan import ScanReader
from analytics.query.sql_text import Sql, column, columns, formatted, joined
from analytics.rows.file_store import is_remote
from analytics.rows.latest_operation import latest, live_rows
from analytics.rows.segment import with_columns
from analytics.schema import CLEARS, OP, AnalyticsTable, TableView

#: The types of columns in DuckDB.
DUCKDB_TYPES: Mapping[str, str] = {
    "bool": "BOOLEAN",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
}


def rows_at(
    plan: ReadPlan,
    table: AnalyticsTable,
    needed: Collection[str],
    where: RowFilter,
    reader: ScanReader,
    id_keys: IdKeys,
    engine: QueryEngine,
) -> Sql:
    """Return a query for the key and these columns of the rows that match a filter."""
    columns_read = {*needed, *where.columns, *table.key}
    names = [name for name in table.columns if name in columns_read]
    operations = operations_at(plan, table, names, where.within(table.key), reader, id_keys)
    view = choose_view(table, columns_read, where)
    files = [file for file in plan.authority if file.view == view.name]
    sources = _authority(files, table, view, names, where, reader, engine)
    if operations.num_rows:
        keys = engine.table(operations.select(list(table.key)))
        same = " AND ".join(f"b.{column(name)} = k.{column(name)}" for name in table.key)
        sources = [f"FROM ({one}) AS b ANTI JOIN {keys} AS k ON {same}" for one in sources]
        changed = engine.table(rows_after(plan, table, names, operations, reader))
        sources.append(f"SELECT {columns(names)} FROM {changed}")
    matching = [formatted(f"FROM ({one}) WHERE {{}}", where.sql) for one in sources]
    return joined(" UNION ALL ", matching or [Sql(f"{_nulls(table, names)} WHERE false")])


def _authority(
    files: Sequence[QueryFile],
    table: AnalyticsTable,
    view: TableView,
    names: Sequence[str],
    where: RowFilter,
    reader: ScanReader,
    engine: QueryEngine,
) -> list[str]:
    """Return queries for columns of the authority's rows: all that match, and others."""
    if any(is_remote(file.path) for file in files):
        rows = reader.authority(files, table, view, names, where)
        return [f"SELECT {columns(names)} FROM {engine.table(rows)}"]
    found = reader.authority_files(files, view, table.view_schema(view), where)
    sources = []
    for stored, paths in found.items():
        aliases = columns(stored)
        selected = ", ".join(
            column(name) if name in stored else f"{_null(table, name)} AS {column(name)}"
            for name in names
        )
        sources.append(f"SELECT {selected} FROM {engine.files(paths)} AS t({aliases})")
    return sources


def _nulls(table: AnalyticsTable, names: Sequence[str]) -> str:
    return "SELECT " + ", ".join(f"{_null(table, name)} AS {column(name)}" for name in names)


def _null(table: AnalyticsTable, name: str) -> str:
    return f"NULL::{DUCKDB_TYPES[table.columns[name]]}"


def operations_at(
    plan: ReadPlan,
    table: AnalyticsTable,
    names: Sequence[str],
    key_filter: RowFilter,
    reader: ScanReader,
    id_keys: IdKeys,
) -> pa.Table:
    """Return the latest operation on each key that the authority does not contain yet.

    `names` includes the key.
    """
    operations = reader.later(
        plan.later, table, names, key_filter, lambda name, part: id_keys[name].ids_in(part)
    )
    if table.is_id_key:
        unstored_rows = with_columns(id_keys[table.name].unstored_rows(), table, names)
        operations = pa.concat_tables([operations, unstored_rows])
    return latest(operations, table.key, table.bits)


def rows_after(
    plan: ReadPlan,
    table: AnalyticsTable,
    names: Sequence[str],
    operations: pa.Table,
    reader: ScanReader,
) -> pa.Table:
    """Return the rows that exist on the keys of operations after these."""
    return live_rows(_complete(plan, table, names, operations, reader))


def choose_view(table: AnalyticsTable, needed: Collection[str], where: RowFilter) -> TableView:
    """Return the view with the longest key prefix that the filter restricts."""
    candidates = [v for v in (table.primary, *table.views) if set(needed) <= set(v.columns)]
    return max(candidates, key=lambda view: _bounded_prefix(view, where))


def _bounded_prefix(view: TableView, where: RowFilter) -> int:
    """Return the length of the prefix of a view's key that the filter bounds."""
    count = 0
    for name in view.key:
        ranges = where.ranges(name)
        if not any(bounds.low is not None or bounds.high is not None for bounds in ranges):
            break
        count += 1
    return count


def _complete(
    plan: ReadPlan,
    table: AnalyticsTable,
    names: Sequence[str],
    operations: pa.Table,
    reader: ScanReader,
) -> pa.Table:
    """Complete partial operations with the columns of the authority's rows."""
    clears = pc.bit_wise_and(operations[OP], pa.scalar(CLEARS, pa.int64()))
    partial = operations.filter(pc.equal(clears, 0))
    files = [file for file in plan.authority if file.view == ""]
    if partial.num_rows == 0 or not files:
        return operations
    keys = partial.select(list(table.key))
    base = reader.authority(files, table, table.primary, names, _near_keys(table, keys, files))
    base = base.join(keys, list(table.key), join_type="left semi")
    base_operations = base.append_column(
        table.stored.field(OP), pa.repeat(pa.scalar(table.inserted, pa.int64()), base.num_rows)
    )
    all_operations = pa.concat_tables([with_columns(base_operations, table, names), operations])
    return latest(all_operations, table.key, table.bits)


def _near_keys(table: AnalyticsTable, keys: pa.Table, files: Sequence[QueryFile]) -> RowFilter:
    """Return a filter that holds for these keys, and for few others."""
    first = table.key[0]
    return near_values(first, keys[first].combine_chunks())
