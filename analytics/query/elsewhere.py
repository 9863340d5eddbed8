"""Queries that have much to look at are answered by the pipeline's workers, many at once.

The state, the ids of keys that are named, and the order of the answer are settled here; workers
answer pieces. Nobody waits for ever, and a query whose caller has gone is cancelled.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from analytics import requests
from analytics.facts import DatasetFacts
from analytics.places import root
from analytics.query import told
from analytics.query.asked import Query
from analytics.query.files import Plan
from analytics.query.filters import Filter
from analytics.query.id_keys import shown
from analytics.query.pieces import Piece, in_pieces, primary_files, together
from analytics.query.run import Answered, Prepared
from analytics.query.scan import MAX_BYTES
from analytics.requests import Request
from data_plane.http.body import ClientGone
from foundation.environment import environment
from foundation.errors import ApiError, QueryTooExpensive, SumOverflow, Unavailable
from foundation.ids import uuid7
from foundation.json_types import JsonObject

#: How long a caller waits, and how often an answer is looked for.
DEADLINE_S, LOOK_S = 120.0, 0.05
_REFUSALS: tuple[type[ApiError], ...] = (QueryTooExpensive, SumOverflow)


class Elsewhere:
    """One query, planned, whose pieces are answered elsewhere."""

    def __init__(
        self,
        dataset: DatasetFacts,
        body: JsonObject,
        query: Query,
        plan: Plan,
        prepared: Prepared,
    ) -> None:
        self._dataset, self._body, self._query, self._plan = dataset, body, query, plan
        self._prepared = prepared
        self._pieces = _pieces(query, plan, prepared.where)

    @property
    def is_large(self) -> bool:
        """Whether the query is to be answered so."""
        return bool(self._pieces)

    async def answered(self, closed: Callable[[], Coroutine[None, None, None]]) -> Answered:
        """Ask, wait, and put the answer together. `closed` returns when the caller has gone."""
        request = await asyncio.to_thread(self._ask)
        gone = asyncio.create_task(closed())
        try:
            async with asyncio.timeout(DEADLINE_S):
                while (lines := await asyncio.to_thread(requests.answered, request)) is None:
                    await asyncio.wait([gone], timeout=LOOK_S)
                    if gone.done():
                        raise ClientGone
        except TimeoutError:
            raise Unavailable(
                f"The pipeline has not answered within {DEADLINE_S:.0f} seconds."
            ) from None
        finally:
            gone.cancel()
            # A request that is taken away is cancelled.
            await asyncio.shield(asyncio.to_thread(request.take_away))
        return await asyncio.to_thread(self._put_together, lines)

    def _ask(self) -> Request:
        scans = requests.folder_for(root(), self._dataset.id)
        tasks = told.tell(
            self._dataset.definition,
            self._body,
            self._plan,
            self._prepared.ids,
            self._pieces,
            scans,
        )
        return requests.ask(scans, str(uuid7()), tasks)

    def _put_together(self, lines: Sequence[str]) -> Answered:
        answers = [json.loads(line) for line in lines]
        for answer in answers:
            _raise_refused(answer)
        tables = [told.read(answer) for answer in answers]
        if sum(table.nbytes for found in tables for table in found) > MAX_BYTES:
            raise QueryTooExpensive(f"The groups of the answer take more than {MAX_BYTES} bytes.")
        rows = together(self._query, self._prepared.having, tables)
        if self._query.group_by is None:
            rows = rows.select(list(self._query.columns))
        rows = shown(rows, self._query.ids, self._prepared.id_keys)
        return Answered(rows, self._plan.state, round(self._plan.freshness_s, 3), _read(answers))


def _pieces(query: Query, plan: Plan, where: Filter) -> Sequence[Piece]:
    files = [*primary_files(query.table, plan, where), *plan.later]
    if sum(file.rows for file in files) <= environment().rillbase_analytics_scan_rows:
        return []
    return in_pieces(query, plan, where)


def _raise_refused(answer: dict[str, Any]) -> None:
    if answer.get("gone"):
        raise FileNotFoundError
    for refusal in _REFUSALS:
        if answer.get("refused") == refusal.code:
            raise refusal(answer["detail"])
    if "tables" not in answer:
        raise Unavailable("The pipeline could not answer: its log says why.")


def _read(answers: Sequence[dict[str, Any]]) -> JsonObject:
    """Return what all pieces have read."""
    whole: dict[str, dict[str, int]] = {}
    for answer in answers:
        for stage, counted in answer["read"].items():
            found = whole.setdefault(stage, {})
            for name, number in counted.items():
                found[name] = found.get(name, 0) + number
    return {stage: dict(found) for stage, found in whole.items()}
