"""Splits a large query into ranges of the primary key that are answered separately.

A piece's result is in a form that can be combined: sum and count for an average, the values for a
distinct count. Pieces do not overlap, so no row is counted twice.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.query.files import QueryFile, ReadPlan
from analytics.query.filters import FilterCondition, RowFilter
from analytics.query.grouping import AggregateExpression, grouped, ordered
from analytics.query.id_keys import IdKeys
from analytics.query.query_parser import AnalyticsQuery
from analytics.query.scan import ScanReader
from analytics.query.state_rows import choose_view, rows_at
from analytics.rows.keys import Key
from analytics.schema import AnalyticsTable

#: How partial aggregates are combined.
_COMBINING = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


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
) -> list[pa.Table]:
    """Return a piece's result, as tables for `combine`."""
    table = replace(query.table, views=())
    primary = [f for f in plan.authority if f.view == "" and _meets(f, piece)]
    within = RowFilter((*where.conditions, *_bounds(table, piece)))
    ordering = [name for name, _ in query.order if name in table.columns]
    needed = {*query.needed, *(ordering if query.group_by is None else ())}
    piece_plan = replace(plan, authority=primary)
    rows = rows_at(piece_plan, table, needed, within, reader, id_keys)
    if query.group_by is None:
        return [ordered(rows, query.order, table.key, query.limit)]
    for aggregate in query.aggregates:
        if aggregate.op == "avg" and _real(aggregate) not in rows.column_names:
            column = rows[aggregate.column].cast(pa.float64())
            rows = rows.append_column(_real(aggregate), column)
    tables = [grouped(rows, query.group_by, _partial(query))]
    for column in _distinct(query):
        by = list(dict.fromkeys([*query.group_by, column]))
        tables.append(grouped(rows, by, [AggregateExpression(" rows", "count", None)]).select(by))
    return tables


def combine(
    query: AnalyticsQuery, having: RowFilter, pieces: Sequence[Sequence[pa.Table]]
) -> pa.Table:
    """Return the rows of the complete result, in order. Keys are still ids."""
    if query.group_by is None:
        rows = pa.concat_tables([tables[0] for tables in pieces])
        return ordered(rows, query.order, query.table.key, query.limit)
    by = list(query.group_by)
    combining = [AggregateExpression(a.name, _COMBINING[a.op], a.name) for a in _partial(query)]
    parts = [_in_order(grouped(pa.concat_tables([t[0] for t in pieces]), by, combining), by)]
    for index, column in enumerate(_distinct(query), start=1):
        values = pa.concat_tables([tables[index] for tables in pieces])
        unique = grouped(values, values.column_names, [AggregateExpression(" rows", "count", None)])
        counts = grouped(unique, by, [AggregateExpression(f" {column}", "distinct", column)])
        parts.append(_in_order(counts, by))
    rows = _finish(query, parts)
    if having.expression is not None:
        rows = rows.filter(having.expression)
    return ordered(rows, query.order, by, query.limit)


def _partial(query: AnalyticsQuery) -> list[AggregateExpression]:
    """Return the partial aggregates of a piece, except for distinct values."""
    partials = [AggregateExpression(" rows", "count", None)]
    for aggregate in query.aggregates:
        if aggregate.op == "avg":
            partials.append(AggregateExpression(f"{aggregate.name} sum", "sum", _real(aggregate)))
            partials.append(
                AggregateExpression(f"{aggregate.name} count", "count", aggregate.column)
            )
        elif aggregate.op != "distinct":
            partials.append(aggregate)
    return partials


def _distinct(query: AnalyticsQuery) -> list[str]:
    """Return the columns whose distinct values are counted."""
    columns = [a.column for a in query.aggregates if a.op == "distinct" and a.column is not None]
    return list(dict.fromkeys(columns))


def _finish(query: AnalyticsQuery, parts: Sequence[pa.Table]) -> pa.Table:
    """Return groups with the final aggregates. All parts have the same groups in the same order."""
    groups = parts[0]
    for part in parts[1:]:
        groups = groups.append_column(part.column_names[-1], part.column(part.num_columns - 1))
    columns = {name: groups[name] for name in query.group_by or ()}
    for aggregate in query.aggregates:
        if aggregate.op == "avg":
            count = groups[f"{aggregate.name} count"].cast(pa.float64())
            divisor = pc.if_else(pc.equal(count, 0), None, count)
            columns[aggregate.name] = pc.divide(groups[f"{aggregate.name} sum"], divisor)
        elif aggregate.op == "distinct":
            columns[aggregate.name] = groups[f" {aggregate.column}"]
        else:
            columns[aggregate.name] = groups[aggregate.name]
    return pa.table(columns)


def _in_order(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in by]) if by else rows


def _real(aggregate: AggregateExpression) -> str:
    """Return the name of the column's copy as doubles, whose sum does not overflow."""
    return f"{aggregate.column} real"


def _meets(file: QueryFile, piece: KeyRange) -> bool:
    ends_before = piece.low is not None and file.highest < piece.low
    return not ends_before and (piece.high is None or file.lowest < piece.high)


def _bounds(table: AnalyticsTable, piece: KeyRange) -> list[FilterCondition]:
    bounds = []
    for key, above in ((piece.low, True), (piece.high, False)):
        if key is not None:
            bounds.append(
                FilterCondition(_key_condition(table, key, above=above), frozenset(table.key))
            )
    return bounds


def _key_condition(table: AnalyticsTable, key: Key, *, above: bool) -> pc.Expression:
    """Return a condition for keys at or above a key, or below it."""
    steps = []
    equal: list[pc.Expression] = []
    for name, part in zip(table.key, key, strict=True):
        kind = table.arrow.field(name).type
        value: Any = pa.scalar(part, pa.int64() if isinstance(part, int) else kind).cast(kind)
        field = pc.field(name)
        steps.append([*equal, field > value if above else field < value])
        equal.append(field == value)
    if above:
        steps.append(equal)
    return functools.reduce(operator.or_, [functools.reduce(operator.and_, s) for s in steps])
