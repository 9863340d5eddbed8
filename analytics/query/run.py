"""Answers a planned query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from analytics.query.files import ReadPlan
from analytics.query.filters import RowFilter
from analytics.query.grouping import grouped, ordered
from analytics.query.id_keys import IdKey, IdKeys, with_keys
from analytics.query.query_parser import AnalyticsQuery
from analytics.query.scan import ScanReader
from analytics.query.state_rows import rows_at
from foundation.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The rows of a result, and how much was read."""

    rows: pa.Table
    state: int
    freshness_s: float
    read: JsonObject


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A planned query with the ids of the keys in its filters."""

    reader: ScanReader
    id_keys: IdKeys
    ids: Mapping[str, Mapping[int | str, int]]
    where: RowFilter
    having: RowFilter


def prepare(query: AnalyticsQuery, plan: ReadPlan) -> PreparedQuery:
    """Look up the keys used in a query."""
    reader = ScanReader()
    id_keys = {
        name: IdKey(query.id_tables[name], id_plan, reader)
        for name, id_plan in plan.id_keys.items()
    }
    keys = query.filters.keys
    ids = {name: id_keys[name].ids_of(keys[name]) for name in keys}
    where, having = query.filters.resolve(ids)
    return PreparedQuery(reader, id_keys, ids, where, having)


def run(query: AnalyticsQuery, plan: ReadPlan, prepared: PreparedQuery) -> ScanResult:
    """Run a query on the files of its plan."""
    reader, id_keys = prepared.reader, prepared.id_keys
    where, having = prepared.where, prepared.having
    order_columns = [name for name, _ in query.order if name in query.table.columns]
    columns_read = {*query.needed, *(order_columns if query.group_by is None else ())}
    rows = rows_at(plan, query.table, columns_read, where, reader, id_keys)
    if query.group_by is not None:
        rows = grouped(rows, query.group_by, query.aggregates)
        if having.expression is not None:
            rows = rows.filter(having.expression)
    # An explicit order uses keys; ties are broken by their ids.
    with_order = {column: name for column, name in query.ids.items() if column in order_columns}
    ties = query.table.key if query.group_by is None else query.group_by
    rows = ordered(with_keys(rows, with_order, id_keys), query.order, ties, query.limit)
    if query.group_by is None:
        rows = rows.select(list(query.columns))
    without_order = {column: name for column, name in query.ids.items() if column not in with_order}
    return ScanResult(
        with_keys(rows, without_order, id_keys),
        plan.state,
        round(plan.freshness_s, 3),
        reader.describe(),
    )
