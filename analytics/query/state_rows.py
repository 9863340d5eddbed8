"""The rows of a table at a state: the authority, and later operations.

Later operations are first merged to one per key. Rows without an operation come from the authority.
If an operation leaves columns unchanged, they are read from the authority's row. The filter is
applied to authority rows while they are read, but to changed rows only once they are complete,
since an operation may change whether a row matches.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from analytics.query.files import QueryFile, ReadPlan
from analytics.query.filters import RowFilter, near_values
from analytics.query.id_keys import IdKeys
from analytics.query.scan import ScanReader
from analytics.rows.latest_operation import latest, live_rows
from analytics.rows.segment import with_columns
from analytics.schema import CLEARS, OP, AnalyticsTable, TableView


def rows_at(
    plan: ReadPlan,
    table: AnalyticsTable,
    columns: Collection[str],
    where: RowFilter,
    reader: ScanReader,
    id_keys: IdKeys,
) -> pa.Table:
    """Return the key and these columns of the rows that match a filter."""
    columns_read = {*columns, *where.columns, *table.key}
    names = [name for name in table.columns if name in columns_read]
    key_filter = where.within(table.key)
    operations = reader.later(
        plan.later, table, names, key_filter, lambda name, part: id_keys[name].ids_in(part)
    )
    if table.is_id_key:
        unstored_rows = with_columns(id_keys[table.name].unstored_rows(), table, names)
        if key_filter.expression is not None:
            unstored_rows = unstored_rows.filter(key_filter.expression)
        operations = pa.concat_tables([operations, unstored_rows])
    operations = latest(operations, table.key, table.bits)
    view = choose_view(table, columns_read, where)
    files = [file for file in plan.authority if file.view == view.name]
    base = reader.authority(files, table, view, names, where)
    if operations.num_rows == 0:
        return base
    if base.num_rows:
        base = base.join(operations.select(list(table.key)), list(table.key), join_type="left anti")
    complete = live_rows(_complete(plan, table, names, operations, reader))
    if where.expression is not None:
        complete = complete.filter(where.expression)
    return pa.concat_tables([_typed(rows, table, names) for rows in (base, complete)])


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
    return RowFilter((near_values(first, keys[first].combine_chunks()),))


def _typed(rows: pa.Table, table: AnalyticsTable, names: Sequence[str]) -> pa.Table:
    """Return columns with their table's types: a join makes keys nullable."""
    schema = pa.schema([table.arrow.field(name) for name in names])
    return pa.Table.from_arrays([rows[name] for name in names], schema=schema)
