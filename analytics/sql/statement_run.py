"""Runs one statement: talks with its worker, and streams the result.

The worker and its slot are occupied until the result has been sent or the caller has disconnected.
The worker blocks while the caller does not read, so the server never buffers a whole result.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

from analytics.facts import DatasetFacts
from analytics.query.files import ReadPlan
from analytics.sql import source
from analytics.sql.request import SqlEngine, StatementRequest
from analytics.sql.spark.remote_run import Unsupported, is_available, rows_read, run_on_spark
from analytics.sql.worker_pools import MAX_WAITING, pools
from foundation.environment import environment
from foundation.errors import (
    EvaluationFailed,
    FieldProblem,
    InvalidBody,
    InvalidSql,
    QueryTooExpensive,
    RateLimited,
    StateExpired,
    SumOverflow,
    Unavailable,
)
from foundation.json_types import JsonObject
from foundation.sandbox import landlock
from foundation.sandbox.failures import FailureReason, JobFailed
from foundation.sandbox.fair_queue import QueueFull
from foundation.sandbox.limits import JobLimits
from foundation.sandbox.problems import reported
from foundation.sandbox.session import Session
from foundation.sandbox.template_client import TemplateFailed

MIB = 1024 * 1024
_OPEN_FILES = 16_384
_PROBLEMS = (InvalidSql, InvalidBody, EvaluationFailed, QueryTooExpensive, SumOverflow)
#: Why a statement ended early.
EXPLANATIONS = {
    FailureReason.MEMORY: "The statement takes more memory than allowed.",
    FailureReason.CPU_TIME: "The statement takes more CPU time than allowed.",
    FailureReason.DEADLINE: "The statement takes longer than its timeout.",
    FailureReason.TEMPORARY_SPACE: "The statement takes more temporary disk space than allowed.",
    FailureReason.CRASH: "The statement ended its worker, probably by using too much memory.",
}
#: Plans the files of tables at one state.
Planner = Callable[[list[str]], Awaitable[Mapping[str, ReadPlan]]]


class _FileRemoved(Exception):
    """A file was removed after it had been planned."""


class StatementRun:
    """One statement. Use `start`, then `parts`, and `aclose` in any case."""

    def __init__(self, dataset: DatasetFacts, request: StatementRequest, plan: Planner) -> None:
        self._dataset = dataset
        self._request = request
        self._plan = plan
        self._resources = AsyncExitStack()
        self._session: Session | None = None
        self.state = 0
        self.freshness_s = 0.0
        self.engine = SqlEngine.DUCKDB

    async def start(self) -> None:
        """Execute the statement until its result begins, or raise what is wrong with it."""
        if not landlock.can_confine_files():
            raise Unavailable("This server's kernel cannot isolate SQL: it needs Linux 6.2.")
        try:
            await self._resources.enter_async_context(
                pools.get().turn(str(self._dataset.tenant_id))
            )
            for _ in range(2):
                try:
                    await self._begin_on_any()
                except _FileRemoved:
                    continue
                return
        except QueueFull:
            detail = f"{MAX_WAITING} statements of the tenant are already waiting."
            raise RateLimited(detail, headers={"Retry-After": "5"}) from None
        except JobFailed as error:
            raise QueryTooExpensive(EXPLANATIONS[error.reason]) from None
        except TemplateFailed:
            raise Unavailable("No worker can execute the statement at the moment.") from None
        raise StateExpired("The files of this state are no longer retained.")

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the result as it comes. Raise `JobFailed` or an error if it breaks off."""
        session = self._session
        if session is None:
            return
        while isinstance(part := await session.receive(), bytes):
            yield part
        if "problem" in part:
            raise reported(part["problem"], _PROBLEMS)
        if "rows" not in part:
            raise JobFailed(FailureReason.CRASH)

    async def aclose(self) -> None:
        """End the worker, and free its slot."""
        await self._resources.aclose()

    async def _begin_on_any(self) -> None:
        """Execute the statement by the engine that the caller or the number of rows chooses."""
        chosen = self._request.engine
        try:
            await self._begin(chosen)
        except (Unsupported, Unavailable) as error:
            if chosen is SqlEngine.SPARK and isinstance(error, Unsupported):
                detail = str(error)
                raise InvalidSql(detail, errors=[FieldProblem("/sql", "engine", detail)]) from None
            if self.engine is not SqlEngine.SPARK or chosen is SqlEngine.SPARK:
                raise
            await self._begin(SqlEngine.DUCKDB)

    async def _begin(self, chosen: SqlEngine) -> None:
        """Execute the statement in a new worker."""
        folders = await asyncio.to_thread(self._folders)
        async with AsyncExitStack() as opened:
            running = pools.get().session(_limits(self._request.timeout_s), *folders)
            session = await opened.enter_async_context(running)
            needs = _checked(
                await session.ask(
                    {"sql": self._request.sql, "definition": self._dataset.definition}
                )
            )
            views = self._views(needs)
            plans = await self._plan([*views])
            self.engine = self._engine(chosen, plans, views)
            described = await self._described(plans, views)
            reply = _checked(await session.ask(described))
            if self.engine is SqlEngine.SPARK and "columns" in reply:
                plan_files = cast("JsonObject", described["plans"])
                rows = await run_on_spark(self._dataset, self._request, plan_files, self.state)
                opened.push_async_callback(rows.aclose)
                _checked(await session.ask({"paths": [*rows.paths]}))
            self._session = session
            await self._resources.enter_async_context(opened.pop_all())

    def _views(self, needs: JsonObject) -> dict[str, list[str]]:
        """Return the views that are read, by their tables; a worker is not trusted."""
        views = needs.get("tables")
        if not isinstance(views, dict) or not views.keys() <= self._dataset.tables.keys():
            raise JobFailed(FailureReason.CRASH)
        return {
            name: [str(view) for view in some]
            for name, some in views.items()
            if isinstance(some, list)
        }

    def _engine(
        self, chosen: SqlEngine, plans: Mapping[str, ReadPlan], views: Mapping[str, list[str]]
    ) -> SqlEngine:
        """Return what executes the statement."""
        if chosen is SqlEngine.DUCKDB:
            return chosen
        if not is_available(self._dataset):
            if chosen is SqlEngine.SPARK:
                detail = "This installation cannot execute SQL on Spark."
                raise InvalidBody(detail, errors=[FieldProblem("/engine", "invalid", detail)])
            return SqlEngine.DUCKDB
        is_large = rows_read(plans, views) > environment().rillbase_sql_spark_rows
        return SqlEngine.SPARK if chosen is SqlEngine.SPARK or is_large else SqlEngine.DUCKDB

    def _folders(self) -> tuple[Path, Path]:
        return source.readable_folder(self._dataset), source.temporary_folder()

    async def _described(
        self, plans: Mapping[str, ReadPlan], views: Mapping[str, list[str]]
    ) -> JsonObject:
        """Return the second request to the worker."""
        for plan in plans.values():
            self.state, self.freshness_s = plan.state, round(plan.freshness_s, 3)
        settings = environment()
        return {
            "plans": await asyncio.to_thread(source.provided, self._dataset, plans, views),
            "state": self.state,
            "freshness_s": self.freshness_s,
            "engine": self.engine,
            "parameters": self._request.parameters,
            "media_type": self._request.media_type,
            "limit": self._request.limit,
            "limits": {
                "memory_mib": settings.rillbase_sql_memory_mib // 2,
                "temporary_mib": settings.rillbase_sql_temporary_mib,
                "threads": settings.rillbase_sql_threads,
            },
        }


def _checked(reply: JsonObject) -> JsonObject:
    """Return a reply, or raise the error that it reports."""
    if "problem" in reply:
        raise reported(reply["problem"], _PROBLEMS)
    if "gone" in reply:
        raise _FileRemoved
    return reply


def _limits(timeout_s: float) -> JobLimits:
    settings = environment()
    return JobLimits(
        memory_bytes=settings.rillbase_sql_memory_mib * MIB,
        cpu_s=int(timeout_s * settings.rillbase_sql_threads) + 2,
        deadline_s=timeout_s,
        file_bytes=settings.rillbase_sql_temporary_mib * MIB,
        open_files=_OPEN_FILES,
    )
