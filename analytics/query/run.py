"""Answers a planned query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from analytics.query.engine import QueryEngine, query_engine
from analytics.query.files import ReadPlan
from analytics.query.filters import RowFilter
from analytics.query.grouping import grouped, ordered
from analytics.query.id_keys import IdKey, IdKeys, with_keys
from analytics.query.query_parser import AnalyticsQuery
from analytics.query.scan import ScanReader
from analytics.query.sql_text import Sql, formatted
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
    with query_engine() as engine:
        rows = _rows(query, plan, prepared, engine)
    freshness_s = round(plan.freshness_s, 3)
    return ScanResult(rows, plan.state, freshness_s, prepared.reader.describe())


def _rows(
    query: AnalyticsQuery, plan: ReadPlan, prepared: PreparedQuery, engine: QueryEngine
) -> pa.Table:
    where, reader, id_keys = prepared.where, prepared.reader, prepared.id_keys
    found = rows_at(plan, query.table, query.needed, where, reader, id_keys, engine)
    if query.group_by is not None:
        found = grouped(found, query.group_by, query.aggregates, query.types)
        found = formatted("FROM ({}) WHERE {}", found, prepared.having.sql)
    schema = query.result
    order_columns = {name for name, _ in query.order}
    # An explicit order uses keys; ties are broken by their ids.
    by_keys = {column: name for column, name in query.ids.items() if column in order_columns}
    if by_keys:
        rows = with_keys(engine.rows(found, schema), by_keys, id_keys)
        found, schema = Sql(f"FROM {engine.table(rows)}"), rows.schema
    types = {field.name: field.type for field in schema}
    found = ordered(found, query.order, query.ties, query.limit, types)
    if query.group_by is None:
        schema = pa.schema([schema.field(name) for name in query.columns])
    others = {column: name for column, name in query.ids.items() if column not in by_keys}
    return with_keys(engine.rows(found, schema), others, id_keys)
