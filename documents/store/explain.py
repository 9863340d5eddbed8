"""How a query is executed: the plan, PostgreSQL's plan for it, and its place in the grid."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from uuid import UUID

from documents.store.database import pool, scope
from documents.store.facts import IndexFacts
from documents.store.large_results import ReadAllowance, in_turn
from documents.store.notices import Notices
from documents.store.planner import CandidatePlan
from documents.store.postgres_snapshot import PostgresSnapshot
from documents.store.queries import CollectionReader, DocumentQuery, answer, opened
from documents.store.scan import FIRST_BATCH, statement
from foundation.errors import QueryTooExpensive
from foundation.json_types import JsonObject, JsonValue
from foundation.postgres import Statement, StatementRunner
from foundation.postgres.session import Oid, int8

_ORDERS = {
    "id": "by _id",
    "index": "by index",
    "time": "by time, the newest first",
    "any": "sorted afterwards",
}


_ADVICE = Statement(
    "SELECT coalesce(advice, 'null')::text FROM documents_index WHERE number = $1", (Oid.INT8,)
)


async def explain(tenant_id: UUID, name: str, query: DocumentQuery) -> JsonObject:
    """Return the plan of a query, and what is missing from its result. For the latter, the query is
    run within its usual limits.
    """
    return await in_turn(tenant_id, partial(_explain, tenant_id, name, query))


async def _explain(
    tenant_id: UUID, name: str, query: DocumentQuery, allowance: ReadAllowance
) -> JsonObject:
    async with opened(tenant_id, name, query.filter, None, allowance=allowance) as reader:
        plan, notices = await _run(reader, query)
        sql, postgres = "", None
        if plan.ranges and isinstance(reader.snapshot, PostgresSnapshot):
            scan, parameters = statement(reader.collection, plan, plan.ranges[0])
            sql = scan.sql
            postgres = await _postgres(reader.snapshot.session, scan, parameters)
    grid = reader.filter.access()
    return {
        "plan": _plan(plan),
        "advice": await _advice(tenant_id, plan.index),
        "sql": sql,
        "postgres": postgres,
        "grid": {"indexable": grid is not None, "access": _access(grid)},
        "notices": notices,
    }


async def _run(
    reader: CollectionReader, query: DocumentQuery
) -> tuple[CandidatePlan, list[JsonValue]]:
    """Return the plan, and the notices of the query's response, or the error with which it would
    fail.
    """
    request = reader.request(query.sort, query.offset + query.limit)
    plan = (await reader.candidates(replace(request, only_plan=True))).plan
    notices = Notices()
    try:
        selection, used = await answer(reader, query)
        notices.add(selection.unevaluated)
    except QueryTooExpensive as error:
        return plan, [{"code": error.code, "detail": error.detail}]
    # By distance, the plan depends on what was counted and read.
    return used if reader.filter.ranks else plan, [*notices.listed()]


def _plan(plan: CandidatePlan) -> JsonObject:
    how = "index" if plan.index is not None else "documents"
    return {
        "reads": how,
        "index": plan.index.name if plan.index is not None else None,
        "ranges": 0 if plan.reads_everything else len(plan.ranges),
        "technique": plan.index.technique if plan.index is not None else None,
        "order": _ORDERS[plan.order],
        "backward": plan.backward,
        "estimated_entries": plan.estimate,
        "reads_everything": plan.reads_everything,
        "first_batch": FIRST_BATCH,
    }


async def _advice(tenant_id: UUID, index: IndexFacts | None) -> JsonValue:
    """Return which technique suits an index, if it is automatic and was used enough."""
    if index is None:
        return None
    async with pool().session() as session:
        step = (_ADVICE, (int8(index.number),))
        _, row = await session.run([scope(tenant_id), step])
    advice: JsonValue = json.loads(row.text(0, 0)) if row.rows else None
    return advice


def _access(grid: list[tuple[str, str]] | None) -> list[JsonValue]:
    return [{"path": path, "kind": kind} for path, kind in grid or []]


async def _postgres(
    session: StatementRunner, scan: Statement, parameters: tuple[bytes | None, ...]
) -> JsonValue:
    explained = Statement("EXPLAIN (FORMAT JSON) " + scan.sql, scan.types)
    (result,) = await session.run([(explained, parameters)])
    plan: JsonValue = json.loads(result.text(0, 0))
    return plan
