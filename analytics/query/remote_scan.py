"""Scans large queries on the pipeline's workers in parallel.

This process chooses the state, looks up the ids of the query's keys and sorts the result; workers
scan pieces. A query has a deadline, and is cancelled when its caller disconnects.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from analytics import requests
from analytics.facts import DatasetFacts
from analytics.locations import root
from analytics.query import scan_task
from analytics.query.engine import query_engine
from analytics.query.files import ReadPlan
from analytics.query.filters import RowFilter
from analytics.query.id_keys import with_keys
from analytics.query.pieces import KeyRange, combine, primary_files, split
from analytics.query.query_parser import AnalyticsQuery
from analytics.query.run import PreparedQuery, ScanResult
from analytics.query.scan import MAX_BYTES
from analytics.requests import DatasetRequest
from data_plane.http.body import ClientGone
from foundation.environment import environment
from foundation.errors import ApiError, QueryTooExpensive, SumOverflow, Unavailable
from foundation.ids import uuid7
from foundation.json_types import JsonObject

#: How long a caller waits, and how often the answer is polled.
DEADLINE_S, POLL_S = 120.0, 0.05
_QUERY_ERRORS: tuple[type[ApiError], ...] = (QueryTooExpensive, SumOverflow)


class RemoteScan:
    """One planned query whose pieces are scanned by workers."""

    def __init__(
        self,
        dataset: DatasetFacts,
        body: JsonObject,
        query: AnalyticsQuery,
        plan: ReadPlan,
        prepared: PreparedQuery,
    ) -> None:
        self._dataset, self._body, self._query, self._plan = dataset, body, query, plan
        self._prepared = prepared
        self._pieces = _pieces(query, plan, prepared.where)

    @property
    def is_large(self) -> bool:
        """Whether the query is large enough for workers."""
        return bool(self._pieces)

    async def result(self, closed: Callable[[], Coroutine[None, None, None]]) -> ScanResult:
        """Submit tasks, wait and merge results. `closed` returns when the caller disconnects."""
        request = await asyncio.to_thread(self._submit)
        disconnect = asyncio.create_task(closed())
        try:
            async with asyncio.timeout(DEADLINE_S):
                while (lines := await asyncio.to_thread(requests.answered, request)) is None:
                    await asyncio.wait([disconnect], timeout=POLL_S)
                    if disconnect.done():
                        raise ClientGone
        except TimeoutError:
            raise Unavailable(
                f"The pipeline did not respond within {DEADLINE_S:.0f} seconds."
            ) from None
        finally:
            disconnect.cancel()
            # Removing the request cancels it.
            await asyncio.shield(asyncio.to_thread(request.delete))
        return await asyncio.to_thread(self._merge, lines)

    def _submit(self) -> DatasetRequest:
        scans = requests.folder_for(root(), self._dataset.id)
        tasks = scan_task.plan_tasks(
            self._dataset.definition,
            self._body,
            self._plan,
            self._prepared.ids,
            self._pieces,
            scans,
        )
        return requests.submit(scans, str(uuid7()), tasks)

    def _merge(self, lines: Sequence[str]) -> ScanResult:
        answers = [json.loads(line) for line in lines]
        for answer in answers:
            _raise_error(answer)
        tables = [scan_task.read_answer(answer) for answer in answers]
        if sum(table.nbytes for piece_tables in tables for table in piece_tables) > MAX_BYTES:
            raise QueryTooExpensive(f"The groups of the result take more than {MAX_BYTES} bytes.")
        with query_engine() as engine:
            rows = combine(self._query, self._prepared.having, tables, engine)
        if self._query.group_by is None:
            rows = rows.select(list(self._query.columns))
        rows = with_keys(rows, self._query.ids, self._prepared.id_keys)
        return ScanResult(
            rows, self._plan.state, round(self._plan.freshness_s, 3), _total_reads(answers)
        )


def _pieces(query: AnalyticsQuery, plan: ReadPlan, where: RowFilter) -> Sequence[KeyRange]:
    files = [*primary_files(query.table, plan, where), *plan.later]
    if sum(file.rows for file in files) <= environment().rillbase_analytics_scan_rows:
        return []
    return split(query, plan, where)


def _raise_error(answer: dict[str, Any]) -> None:
    if answer.get("gone"):
        raise FileNotFoundError
    for error in _QUERY_ERRORS:
        if answer.get("refused") == error.code:
            raise error(answer["detail"])
    if "tables" not in answer:
        raise Unavailable("The pipeline failed to run the query. Its log contains the reason.")


def _total_reads(answers: Sequence[dict[str, Any]]) -> JsonObject:
    """Sum what the pieces have read."""
    totals: dict[str, dict[str, int]] = {}
    for answer in answers:
        for stage, reads in answer["read"].items():
            total = totals.setdefault(stage, {})
            for name, number in reads.items():
                total[name] = total.get(name, 0) + number
    return {stage: dict(total) for stage, total in totals.items()}
