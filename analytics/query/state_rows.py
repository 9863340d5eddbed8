"""The rows of a table at a state: the authority, and later operations.

Later operations are first merged to one per key. The authority contributes the rows without an
operation; where an operation leaves columns unchanged, the underlying row is read. The filter is
applied to the authority while it is read, and to the rest once it is complete: a row that matched
may no longer match.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from analytics.query.files import QueryFile, ReadPlan
from analytics.query.filters import RowFilter, near
from analytics.query.id_keys import IdKeys
from analytics.query.scan import ScanReader
from analytics.rows.latest_operation import latest, living
from analytics.rows.segment import with_columns
from analytics.schema import CLEARS, OP, AnalyticsTable, TableView


def rows_at(
    plan: ReadPlan,
    table: AnalyticsTable,
    columns: Collection[str],
    where: RowFilter,
    reading: ScanReader,
    id_keys: IdKeys,
) -> pa.Table:
    """Return columns of the rows for which a filter holds, besides the key's columns."""
    needed = {*columns, *where.columns, *table.key}
    names = [name for name in table.columns if name in needed]
    of_keys = where.within(table.key)
    since = reading.later(
        plan.later, table, names, of_keys, lambda name, part: id_keys[name].ids_in(part)
    )
    if table.is_id_key:
        fresh = with_columns(id_keys[table.name].fresh(), table, names)
        if of_keys.expression is not None:
            fresh = fresh.filter(of_keys.expression)
        since = pa.concat_tables([since, fresh])
    since = latest(since, table.key, table.bits)
    view = choose_view(table, needed, where)
    files = [file for file in plan.authority if file.view == view.name]
    below = reading.authority(files, table, view, names, where)
    if since.num_rows == 0:
        return below
    if below.num_rows:
        below = below.join(since.select(list(table.key)), list(table.key), join_type="left anti")
    complete = living(_on_base(plan, table, names, since, reading))
    if where.expression is not None:
        complete = complete.filter(where.expression)
    return pa.concat_tables([_typed(rows, table, names) for rows in (below, complete)])


def choose_view(table: AnalyticsTable, needed: Collection[str], where: RowFilter) -> TableView:
    """Return the view with the longest key prefix that the filter restricts."""
    fitting = [v for v in (table.primary, *table.views) if set(needed) <= set(v.columns)]
    return max(fitting, key=lambda view: _narrowed(view, where))


def _narrowed(view: TableView, where: RowFilter) -> int:
    """Return the length of the prefix of a view's key that the filter bounds."""
    count = 0
    for name in view.key:
        ranges = where.ranges(name)
        if not any(bounds.low is not None or bounds.high is not None for bounds in ranges):
            break
        count += 1
    return count


def _on_base(
    plan: ReadPlan,
    table: AnalyticsTable,
    names: Sequence[str],
    since: pa.Table,
    reading: ScanReader,
) -> pa.Table:
    """Complete operations that leave columns unchanged from the underlying rows."""
    clears = pc.bit_wise_and(since[OP], pa.scalar(CLEARS, pa.int64()))
    open_ = since.filter(pc.equal(clears, 0))
    files = [file for file in plan.authority if file.view == ""]
    if open_.num_rows == 0 or not files:
        return since
    keys = open_.select(list(table.key))
    base = reading.authority(files, table, table.primary, names, _sought(table, keys, files))
    base = base.join(keys, list(table.key), join_type="left semi")
    masked = base.append_column(
        table.stored.field(OP), pa.repeat(pa.scalar(table.inserted, pa.int64()), base.num_rows)
    )
    both = pa.concat_tables([with_columns(masked, table, names), since])
    return latest(both, table.key, table.bits)


def _sought(table: AnalyticsTable, keys: pa.Table, files: Sequence[QueryFile]) -> RowFilter:
    """Return a filter that holds for some keys, and for few others."""
    first = table.key[0]
    return RowFilter((near(first, keys[first].combine_chunks()),))


def _typed(rows: pa.Table, table: AnalyticsTable, names: Sequence[str]) -> pa.Table:
    """Return columns with their table's types: a join loses that a key is never null."""
    schema = pa.schema([table.arrow.field(name) for name in names])
    return pa.Table.from_arrays([rows[name] for name in names], schema=schema)
