"""Splits a large query into ranges of the primary key that are answered separately.

A piece's result is in a form that can be combined: sum and count for an average, the values for a
distinct count. Pieces do not overlap, so no row is counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow as pa

from analytics.query.engine import QueryEngine
from analytics.query.files import QueryFile, ReadPlan
from analytics.query.filters import FilterCondition, RowFilter
from analytics.query.grouping import (
    AggregateExpression,
    aggregated,
    grouping,
    ordered,
    type_of,
    whole_sum,
)
from analytics.query.id_keys import IdKeys
from analytics.query.query_parser import AnalyticsQuery
from analytics.query.ranges import ValueRange
from analytics.query.scan import ScanReader
from analytics.query.sql_text import Sql, column, formatted, joined, moment, parameter
from analytics.query.state_rows import choose_view, rows_at
from analytics.rows.keys import Key, Null, Part
from analytics.schema import AnalyticsTable

_ROWS = " rows"


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys from `low` inclusive to `high` exclusive; None: unbounded."""

    low: Key | None
    high: Key | None


def split(query: AnalyticsQuery, plan: ReadPlan, where: RowFilter) -> list[KeyRange]:
    """Return the pieces of a query: one for each file of the authority that it must read.

    Return none if the query cannot be split, because it is ordered by keys that are stored as ids,
    or if a secondary view answers it with fewer reads.
    """
    by_ids = any(name in query.ids for name, _ in query.order)
    if by_ids or choose_view(query.table, {*query.needed, *where.columns}, where).name:
        return []
    files = sorted(primary_files(query.table, plan, where), key=lambda file: file.lowest)
    starts: list[Key | None] = [None, *(file.lowest for file in files[1:]), None]
    return [KeyRange(low, high) for low, high in pairwise(starts)]


def primary_files(table: AnalyticsTable, plan: ReadPlan, where: RowFilter) -> list[QueryFile]:
    """Return the files of the authority's primary view that may have rows for a filter."""
    ranges = where.ranges(table.key[0])
    return [
        file
        for file in plan.authority
        if file.view == "" and all(r.meets(file.lowest[0], file.highest[0]) for r in ranges)
    ]


def answer_piece(
    query: AnalyticsQuery,
    plan: ReadPlan,
    where: RowFilter,
    piece: KeyRange,
    reader: ScanReader,
    id_keys: IdKeys,
    engine: QueryEngine,
) -> list[pa.Table]:
    """Return a piece's result, as tables for `combine`."""
    table = replace(query.table, views=())
    primary = [f for f in plan.authority if f.view == "" and _meets(f, piece)]
    within = RowFilter((*where.conditions, *_bounds(table, piece)))
    piece_plan = replace(plan, authority=primary)
    rows = rows_at(piece_plan, table, query.needed, within, reader, id_keys, engine)
    if query.group_by is None:
        first = ordered(rows, query.order, query.ties, query.limit, query.types)
        return [engine.rows(first, query.result)]
    by = [query.table.arrow.field(name) for name in query.group_by]
    partials = _partials(query)
    values = {name: sql for name, (sql, _) in partials.items()}
    schema = pa.schema([*by, *((name, kind) for name, (_, kind) in partials.items())])
    tables = [engine.rows(grouping(rows, query.group_by, values), schema)]
    for name in _distinct(query):
        values = {_values_of(name): column(name)}
        unique = formatted("SELECT DISTINCT * FROM ({})", _selected(rows, query.group_by, values))
        schema = pa.schema([*by, (_values_of(name), query.types[name])])
        tables.append(engine.rows(unique, schema))
    return tables


def combine(
    query: AnalyticsQuery,
    having: RowFilter,
    pieces: Sequence[Sequence[pa.Table]],
    engine: QueryEngine,
) -> pa.Table:
    """Return the rows of the complete result, in order. Keys are still ids."""
    # The tables at one place of all pieces have the same columns.
    parts = [f"FROM {engine.table(pa.concat_tables(same))}" for same in zip(*pieces, strict=True)]
    found, schema = Sql(" UNION ALL BY NAME ".join(parts)), query.result
    if query.group_by is not None:
        values = {one.name: _combined(one, query.types) for one in query.aggregates}
        found = grouping(found, query.group_by, values)
        found = formatted("FROM ({}) WHERE {}", found, having.sql)
    types = {field.name: field.type for field in schema}
    return engine.rows(ordered(found, query.order, query.ties, query.limit, types), schema)


def _partials(query: AnalyticsQuery) -> dict[str, tuple[str, pa.DataType]]:
    """Return the partial aggregates of a piece, with their types, except for distinct values."""
    partials: dict[str, tuple[str, pa.DataType]] = {_ROWS: ("count(*)", pa.int64())}
    for one in query.aggregates:
        if one.op in ("sum", "avg") and one.column is not None:
            is_real = pa.types.is_floating(query.types[one.column])
            kind = pa.float64() if is_real else pa.decimal128(38, 0)
            partials[_sum_of(one)] = (f"sum({column(one.column)})", kind)
            partials[_count_of(one)] = (f"count({column(one.column)})", pa.int64())
        elif one.op != "distinct":
            partials[one.name] = (aggregated(one, query.types), type_of(one, query.types))
    return partials


def _combined(one: AggregateExpression, types: Mapping[str, pa.DataType]) -> str:
    """Return an aggregate of all rows, from partial ones."""
    if one.op == "distinct" and one.column is not None:
        return f"count(DISTINCT {column(_values_of(one.column))})"
    if one.op == "count" or one.column is None:
        return f"CAST(sum({column(one.name)}) AS BIGINT)"
    total = f"sum({column(_sum_of(one))})"
    if one.op == "avg":
        return f"CAST({total} AS DOUBLE) / nullif(sum({column(_count_of(one))}), 0)"
    if one.op == "sum":
        return total if pa.types.is_floating(types[one.column]) else whole_sum(total, one.column)
    return aggregated(replace(one, column=one.name), {one.name: types[one.column]})


def _distinct(query: AnalyticsQuery) -> list[str]:
    """Return the columns whose distinct values are counted."""
    columns = [a.column for a in query.aggregates if a.op == "distinct" and a.column is not None]
    return list(dict.fromkeys(columns))


def _selected(rows: Sql, by: Sequence[str], values: Mapping[str, str]) -> Sql:
    named = [f"{value} AS {column(name)}" for name, value in values.items()]
    return formatted(f"SELECT {', '.join([*map(column, by), *named])} FROM ({{}})", rows)


def _sum_of(aggregate: AggregateExpression) -> str:
    return f"{aggregate.name} sum"


def _count_of(aggregate: AggregateExpression) -> str:
    return f"{aggregate.name} count"


def _values_of(name: str) -> str:
    return f"{name} values"


def _meets(file: QueryFile, piece: KeyRange) -> bool:
    ends_before = piece.low is not None and file.highest < piece.low
    return not ends_before and (piece.high is None or file.lowest < piece.high)


def _bounds(table: AnalyticsTable, piece: KeyRange) -> list[FilterCondition]:
    first = table.key[0]
    bounds = []
    for key, above in ((piece.low, True), (piece.high, False)):
        if key is None:
            continue
        condition = _key_condition(table, key, above=above)
        part = _present(key[0])
        nearly = ValueRange(low=part) if above else ValueRange(high=part)
        bounds.append(FilterCondition(condition, frozenset(table.key), {first: nearly}))
    return bounds


def _key_condition(table: AnalyticsTable, key: Key, *, above: bool) -> Sql:
    """Return a condition for keys at or above a key, or below it."""
    steps: list[Sql] = []
    equal: list[Sql] = []
    for name, part in zip(table.key, key, strict=True):
        value = _value(table.columns[name], _present(part))
        sign = ">" if above else "<"
        beyond = formatted(f"{column(name)} {sign} {{}}", value)
        steps.append(joined(" AND ", [*equal, beyond]))
        equal.append(formatted(f"{column(name)} = {{}}", value))
    if above:
        steps.append(joined(" AND ", equal))
    return formatted("({})", joined(" OR ", steps))


def _present(part: Part) -> int | str:
    if isinstance(part, Null):  # the keys of primary views have none
        raise TypeError("a null in a primary key")
    return part


def _value(kind: str, part: int | str) -> Sql:
    """Return a part of a key as a parameter of a column's type."""
    if kind == "timestamp" and isinstance(part, int):
        return moment(part)
    if kind == "date":
        return Sql("(DATE '1970-01-01' + CAST(? AS INTEGER))", (part,))
    return parameter(part)
