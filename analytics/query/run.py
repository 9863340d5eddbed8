"""A planned query is answered."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from analytics.query.asked import Query
from analytics.query.grouped import grouped, ordered
from analytics.query.merged import rows_at
from analytics.query.plan import Plan
from analytics.query.scan import Reading
from foundation.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Answered:
    """Rows, and what it took to find them."""

    rows: pa.Table
    state: int
    freshness_s: float
    read: JsonObject


def run(query: Query, plan: Plan) -> Answered:
    """Answer a query from the files of its plan."""
    reading = Reading()
    ordering = [name for name, _ in query.order if name in query.table.columns]
    needed = {*query.needed, *(ordering if query.group_by is None else ())}
    rows = rows_at(plan, query.table, needed, query.where, reading)
    if query.group_by is None:
        rows = ordered(rows, query.order, query.table.key, query.limit).select(list(query.columns))
    else:
        rows = grouped(rows, query.group_by, query.aggregates)
        if query.having.expression is not None:
            rows = rows.filter(query.having.expression)
        rows = ordered(rows, query.order, query.group_by, query.limit)
    return Answered(rows, plan.state, round(plan.freshness_s, 3), reading.describe())
