"""Answers a planned query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from analytics.query.files import ReadPlan
from analytics.query.filters import RowFilter
from analytics.query.grouping import grouped, ordered
from analytics.query.id_keys import IdKey, IdKeys, shown
from analytics.query.query_parser import AnalyticsQuery
from analytics.query.scan import ScanReader
from analytics.query.state_rows import rows_at
from foundation.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The rows of an answer, and what was read for them."""

    rows: pa.Table
    state: int
    freshness_s: float
    read: JsonObject


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A planned query with the ids of the keys that it names."""

    reading: ScanReader
    id_keys: IdKeys
    ids: Mapping[str, Mapping[int | str, int]]
    where: RowFilter
    having: RowFilter


def prepare(query: AnalyticsQuery, plan: ReadPlan) -> PreparedQuery:
    """Look up the keys used in a query."""
    reading = ScanReader()
    id_keys = {
        name: IdKey(query.id_tables[name], id_plan, reading)
        for name, id_plan in plan.id_keys.items()
    }
    named = query.filters.named
    ids = {name: id_keys[name].ids_of(named[name]) for name in named}
    where, having = query.filters.resolved(ids)
    return PreparedQuery(reading, id_keys, ids, where, having)


def run(query: AnalyticsQuery, plan: ReadPlan, prepared: PreparedQuery) -> ScanResult:
    """Answer a query from the files of its plan."""
    reading, id_keys = prepared.reading, prepared.id_keys
    where, having = prepared.where, prepared.having
    ordering = [name for name, _ in query.order if name in query.table.columns]
    needed = {*query.needed, *(ordering if query.group_by is None else ())}
    rows = rows_at(plan, query.table, needed, where, reading, id_keys)
    if query.group_by is not None:
        rows = grouped(rows, query.group_by, query.aggregates)
        if having.expression is not None:
            rows = rows.filter(having.expression)
    # Explicit order by keys uses the keys themselves; ties are broken by their ids.
    first = {column: name for column, name in query.ids.items() if column in ordering}
    ties = query.table.key if query.group_by is None else query.group_by
    rows = ordered(shown(rows, first, id_keys), query.order, ties, query.limit)
    if query.group_by is None:
        rows = rows.select(list(query.columns))
    rest = {column: name for column, name in query.ids.items() if column not in first}
    return ScanResult(
        shown(rows, rest, id_keys), plan.state, round(plan.freshness_s, 3), reading.describe()
    )
