"""The later phases as SQL: group by, aggregate, filter again, order, limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from analytics.query.sql_text import Sql, column, formatted, literal_text

FUNCTIONS = ("count", "sum", "min", "max", "avg", "distinct")
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
#: Marks the error of a sum, followed by its column.
SUM_OVERFLOW = "sum overflow: "


@dataclass(frozen=True, slots=True)
class AggregateExpression:
    """One value per group. Without a column, rows are counted."""

    name: str
    op: str
    column: str | None


def grouped(
    source: Sql,
    by: Sequence[str],
    aggregates: Sequence[AggregateExpression],
    types: Mapping[str, pa.DataType],
) -> Sql:
    """Return a row for each group, or one row if `by` is empty."""
    values = {one.name: aggregated(one, types) for one in aggregates}
    return grouping(source, by, values)


def grouping(source: Sql, by: Sequence[str], values: Mapping[str, str]) -> Sql:
    """Return a row for each group with the values of these expressions."""
    keys = [column(name) for name in by]
    group_by = f" GROUP BY {', '.join(keys)}" if keys else ""
    named = [f"{value} AS {column(name)}" for name, value in values.items()]
    return formatted(f"SELECT {', '.join([*keys, *named])} FROM ({{}}){group_by}", source)


def aggregated(aggregate: AggregateExpression, types: Mapping[str, pa.DataType]) -> str:
    """Return the expression of an aggregate over columns of these types."""
    if aggregate.column is None:
        return "count(*)"
    name, kind = column(aggregate.column), types[aggregate.column]
    if aggregate.op == "distinct":
        return f"count(DISTINCT {name})"
    if aggregate.op == "max" and pa.types.is_floating(kind):
        # In SQL, NaN is the greatest number. Here it is only if there is no other.
        return f"coalesce(max({name}) FILTER (NOT isnan({name})), max({name}))"
    if aggregate.op == "sum" and not pa.types.is_floating(kind):
        return whole_sum(f"sum({name})", aggregate.column)
    return f"{aggregate.op}({name})"


def whole_sum(total: str, name: str) -> str:
    """Return a sum of integers, which has 128 bits, with 64 bits."""
    fits = f"{total} BETWEEN {_INT64_MIN} AND {_INT64_MAX}"
    message = literal_text(f"{SUM_OVERFLOW}{name}")
    return f"CAST(CASE WHEN NOT {fits} THEN error({message})::HUGEINT ELSE {total} END AS BIGINT)"


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


def ordered(
    source: Sql,
    order: Sequence[tuple[str, bool]],
    ties: Sequence[str],
    limit: int,
    types: Mapping[str, pa.DataType],
) -> Sql:
    """Return the first rows by `order`, where True means descending, then by `ties`."""
    ordered_by = {name for name, _ in order}
    by = [*order, *((name, False) for name in ties if name not in ordered_by)]
    terms = [term for name, descending in by for term in _terms(name, types, descending=descending)]
    order_by = f" ORDER BY {', '.join(terms)}" if terms else ""
    return formatted(f"FROM ({{}}){order_by} LIMIT {limit}", source)


def _terms(name: str, types: Mapping[str, pa.DataType], *, descending: bool) -> list[str]:
    """Return the terms of ORDER BY for a column. Null is last in both directions, after NaN."""
    term = f"{column(name)} {'DESC' if descending else 'ASC'} NULLS LAST"
    if pa.types.is_floating(types[name]):
        return [f"isnan({column(name)}) NULLS LAST", term]
    return [term]
