"""The later phases: group by, aggregate, filter again, order, limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from foundation.errors import SumOverflow

#: The Arrow functions of the aggregates.
FUNCTIONS: Mapping[str, str] = {
    "count": "count",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "avg": "mean",
    "distinct": "count_distinct",
}
#: Arrow's form of an aggregation: columns, function, options.
_Call: TypeAlias = tuple[str | list[str], str] | tuple[str, str, pc.FunctionOptions]
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AggregateExpression:
    """One value per group. Without a column, rows are counted."""

    name: str
    op: str
    column: str | None


def grouped(
    rows: pa.Table, by: Sequence[str], aggregates: Sequence[AggregateExpression]
) -> pa.Table:
    """Return a row for each group, or one row if `by` is empty."""
    for aggregate in aggregates:
        _check_sum(rows, aggregate)
    calls = [_call(aggregate) for aggregate in aggregates]
    groups = rows.group_by(list(by), use_threads=False).aggregate(calls)
    return groups.rename_columns([*by, *(aggregate.name for aggregate in aggregates)])


def ordered(
    rows: pa.Table, order: Sequence[tuple[str, bool]], ties: Sequence[str], limit: int
) -> pa.Table:
    """Return the first rows by `order`, where True means descending, then by `ties`."""
    ordered_by = {name for name, _ in order}
    by = [*order, *((name, False) for name in ties if name not in ordered_by)]
    if by and rows.num_rows > 1:
        rows = rows.take(_sort_indices(rows, by)[:limit])
    return rows.slice(0, limit)


def _sort_indices(rows: pa.Table, by: Sequence[tuple[str, bool]]) -> pa.Array:
    """Return the row indexes in sort order. Composite keys are ordered by their parts."""
    columns: list[pa.ChunkedArray] = []
    descending: list[bool] = []
    for name, is_descending in by:
        kind = rows[name].type
        parts = range(kind.num_fields) if pa.types.is_struct(kind) else ()
        parts_of_column = [pc.struct_field(rows[name], [part]) for part in parts] or [rows[name]]
        columns += parts_of_column
        descending += [is_descending] * len(parts_of_column)
    names = [str(index) for index in range(len(columns))]
    directions = ["descending" if is_descending else "ascending" for is_descending in descending]
    sort_columns = pa.Table.from_arrays(columns, names=names)
    return pc.sort_indices(sort_columns, sort_keys=list(zip(names, directions, strict=True)))


def type_of(aggregate: AggregateExpression, types: Mapping[str, pa.DataType]) -> pa.DataType:
    """Return the type of an aggregate's results."""
    if aggregate.op in ("count", "distinct") or aggregate.column is None:
        return pa.int64()
    kind = types[aggregate.column]
    if aggregate.op == "avg":
        return pa.float64()
    if aggregate.op == "sum":
        return pa.int64() if pa.types.is_integer(kind) else pa.float64()
    return kind


def _call(aggregate: AggregateExpression) -> _Call:
    if aggregate.column is None:
        return ([], "count_all")
    function = FUNCTIONS[aggregate.op]
    if aggregate.op in ("count", "distinct"):
        return (aggregate.column, function, pc.CountOptions(mode="only_valid"))
    return (aggregate.column, function)


def _check_sum(rows: pa.Table, aggregate: AggregateExpression) -> None:
    """Reject an integer sum that may exceed 64 bits: it would silently wrap around."""
    if aggregate.op != "sum" or aggregate.column is None or not rows.num_rows:
        return
    column = rows[aggregate.column]
    if not pa.types.is_integer(column.type):
        return
    bounds = pc.min_max(column).as_py()
    largest = max(abs(bounds["min"] or 0), abs(bounds["max"] or 0))
    if largest * rows.num_rows > _INT64_MAX:
        raise SumOverflow(f"The sum of {aggregate.column} may not fit into 64 bits.")
