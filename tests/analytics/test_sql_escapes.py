"""Statements that must be refused, and attacks on the process that executes them."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from foundation.json_types import JsonObject
from foundation.sandbox.failures import FailureReason, JobFailed
from foundation.sandbox.limits import JobLimits
from tests import machine
from tests.analytics.refused_sql import EVALUATED_BY_NOBODY, REFUSED
from tests.analytics.sql_worker import DEFINITION, LIMITS, MIB, UNCHECKED, SqlWorkers
from tests.peak_memory import peak_memory
from tests.stillness import Stillness
from tests.waiting import until

SECRET = "the rows of another tenant"
LARGE_SORT = """
    SELECT md5(i::VARCHAR) AS a, repeat('z', 100) AS b FROM range(8_000_000) t(i) ORDER BY a DESC"""


@pytest.fixture
async def workers(tmp_path: Path) -> AsyncIterator[SqlWorkers]:
    workers = SqlWorkers(tmp_path)
    workers.write_rows(1_000)
    yield workers
    await workers.aclose()


@pytest.fixture
async def unchecked(tmp_path: Path) -> AsyncIterator[SqlWorkers]:
    """Workers without the allow-list."""
    workers = SqlWorkers(tmp_path / "unchecked", UNCHECKED)
    workers.write_rows(1_000)
    (tmp_path / "unchecked" / "other").write_text(SECRET)
    (workers.data / "neighbour.csv").write_text("a\n1\n")
    yield workers
    await workers.aclose()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def digest(folder: Path) -> str:
    entries = sorted((path.name, path.read_bytes()) for path in folder.iterdir())
    return hashlib.sha256(repr(entries).encode()).hexdigest()


async def test_statements_outside_of_the_language_are_refused_by_name(workers: SqlWorkers) -> None:
    for statement, word in REFUSED.items():
        reply, streamed = await workers.run(statement)
        assert streamed == b"", statement
        assert "problem" in reply, statement
        problem = reply["problem"]
        assert isinstance(problem, dict)
        assert problem["code"] == "invalid_sql", (statement, problem)
        assert word in str(problem["detail"]), (statement, problem)


@pytest.mark.parametrize("unlocked", [False, True], ids=["locked", "unlocked"])
async def test_what_the_allow_list_would_refuse_does_not_leave_the_process(
    unchecked: SqlWorkers, tmp_path: Path, *, unlocked: bool
) -> None:
    before, other = digest(unchecked.data), tmp_path / "unchecked" / "other"
    for statement in EVALUATED_BY_NOBODY:
        sql = statement.format(other=other, temporary=unchecked.temporary)
        try:
            _, streamed = await unchecked.run(sql, unlocked=unlocked)
        except JobFailed:
            continue
        assert SECRET.encode() not in streamed, statement
        assert b"root:" not in streamed, statement
    assert digest(unchecked.data) == before
    assert names(unchecked.temporary) == set()
    assert names(other.parent) == {"data", "other", "temporary"}


async def test_code_in_the_process_reaches_nothing_but_its_folders(
    unchecked: SqlWorkers, tmp_path: Path
) -> None:
    before = digest(unchecked.data)
    async with unchecked.session() as session:
        asked: JsonObject = {
            "attack": True,
            "other": str(tmp_path / "unchecked" / "other"),
            "inside": "orders.parquet",
        }
        result = await session.ask(asked)
    assert result["succeeded"] == []
    assert (result["own"], result["read"] != 0) == ("its own", True)
    if os.geteuid() == 0:
        assert result["user"] not in (0, os.getuid())
    assert digest(unchecked.data) == before


async def test_files_that_are_closed_to_others_are_read_without_the_rights_of_root(
    unchecked: SqlWorkers, workers: SqlWorkers
) -> None:
    for pool in (unchecked, workers):
        pool.data.chmod(0o700)
        (pool.data / "orders.parquet").chmod(0o600)
    async with unchecked.session() as session:
        asked: JsonObject = {"attack": True, "other": "/", "inside": "orders.parquet"}
        assert (await session.ask(asked))["succeeded"] == []
    assert await workers.rows("SELECT count(*) AS n FROM orders") == [{"n": 1_000}]


async def test_every_worker_has_a_user_of_its_own(unchecked: SqlWorkers) -> None:
    machine.require_root("change users")
    users = set()
    async with unchecked.session() as first, unchecked.session() as second:
        for session in (first, second):
            asked: JsonObject = {"attack": True, "other": "/", "inside": "orders.parquet"}
            users.add((await session.ask(asked))["user"])
    assert len(users) == 2


async def test_workers_wait_for_statements_and_end_with_their_pool(workers: SqlWorkers) -> None:
    def waiting() -> set[int]:
        template = workers.pool._template
        assert template is not None
        children = psutil.Process(template._process.pid).children()
        return {child.pid for child in children if child.status() != psutil.STATUS_ZOMBIE}

    assert await workers.rows("SELECT 1 AS a") == [{"a": 1}]
    await until(lambda: bool(waiting()), what="a worker to wait")
    before = waiting()
    async with workers.session() as session:
        assert "tables" in await session.ask({"sql": "SELECT 2", "definition": DEFINITION})
        assert waiting() == before, "the session has the worker that was waiting"
    await until(lambda: bool(waiting() - before), what="the next worker to wait")
    left = waiting()
    assert not left & before, "no worker does two statements"
    await workers.aclose()
    await until(lambda: not any(map(psutil.pid_exists, left)), what="workers to end")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT sum(length(repeat('x', 1_000_000_000 + i::INT))) FROM range(20) t(i)",
        "SELECT list(repeat('x', 1000) || i) FROM range(10_000_000) t(i)",
        "SELECT lpad('', 2_000_000_000, 'abc')",
        "SELECT list_sort(range(500_000_000))",
        "SELECT string_agg(repeat('y', 10_000), '') FROM range(1_000_000)",
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r) SELECT max(i) FROM r",
        "SELECT count(*) FROM range(10_000_000) a, range(10_000_000) b WHERE a.range + b.range = 1",
        "SELECT " + "(" * 4_000 + "1" + ")" * 4_000,
        "SELECT " + "1 + " * 20_000 + "1",
        "SELECT * FROM orders WHERE id IN (" + ", ".join(map(str, range(15_000))) + ")",
        "SELECT histogram(i) FROM range(50_000_000) t(i)",
        "SELECT regexp_replace(repeat('a', 100_000_000), '(a*)*b', 'x')",
        "SELECT a.id FROM orders a, orders b, orders c, orders d ORDER BY random() DESC",
    ],
)
async def test_a_greedy_statement_harms_only_itself(workers: SqlWorkers, statement: str) -> None:
    limits = JobLimits(
        memory_bytes=768 * MIB, cpu_s=2, deadline_s=8, file_bytes=64 * MIB, open_files=256
    )
    begin = time.monotonic()
    with peak_memory() as peak, suppress(JobFailed):
        await workers.run(statement, limits=limits)
    assert peak.added_mib < 64
    assert time.monotonic() - begin < 20
    assert await workers.rows("SELECT count(*) AS n FROM orders") == [{"n": 1_000}]
    assert names(workers.temporary) == set()


async def test_a_result_of_a_billion_rows_is_cut_off(workers: SqlWorkers) -> None:
    statement = "SELECT i FROM range(1_000_000_000) t(i)"
    reply, streamed = await workers.run(statement, limit=100, media_type="application/x-ndjson")
    assert reply == {"rows": 100}
    assert streamed.count(b"\n") == 100


async def test_a_worker_pauses_while_its_result_is_not_read(workers: SqlWorkers) -> None:
    async with workers.session() as session:
        await session.ask(
            {"sql": "SELECT i FROM range(1e12::BIGINT) t(i)", "definition": DEFINITION}
        )
        request: JsonObject = {
            "plans": {},
            "state": 1,
            "freshness_s": 0,
            "engine": "duckdb",
            "parameters": [],
            "media_type": "application/x-ndjson",
            "limit": 10**12,
            "limits": {"memory_mib": 256, "temporary_mib": 64, "threads": 2},
        }
        assert await session.ask(request) == {"ready": True}
        (worker,) = [p for p in psutil.Process().children(recursive=True) if p.nice() == 19]
        await until(Stillness(worker), "the worker to wait for its reader")
        assert worker.memory_info().rss < 1024 * MIB
        assert isinstance(await session.receive(), bytes)


async def test_a_job_ends_at_its_deadline_even_if_nobody_waits_for_it(workers: SqlWorkers) -> None:
    limits = JobLimits(LIMITS.memory_bytes, cpu_s=60, deadline_s=1.0, file_bytes=MIB, open_files=64)
    with pytest.raises(JobFailed) as failed:
        await workers.run(
            "SELECT count(*) FROM range(1e15::BIGINT) t(i) WHERE i % 7 = 8", limits=limits
        )
    assert failed.value.reason is FailureReason.DEADLINE


async def test_temporary_files_have_a_quota(workers: SqlWorkers) -> None:
    engine: JsonObject = {"memory_mib": 64, "temporary_mib": 16, "threads": 1}
    reply, _ = await workers.run(LARGE_SORT, engine=engine)
    problem = reply["problem"]
    assert isinstance(problem, dict)
    assert problem["code"] == "query_too_expensive"
    assert "temporary" in str(problem["detail"])


async def test_a_process_that_ignores_the_quota_does_not_get_more(workers: SqlWorkers) -> None:
    # DuckDB is told of far more than the process may use.
    engine: JsonObject = {"memory_mib": 64, "temporary_mib": 10_000, "threads": 1}
    limits = JobLimits(1024 * MIB, cpu_s=60, deadline_s=60, file_bytes=64 * MIB, open_files=64)
    try:
        reply, _ = await workers.run(LARGE_SORT, engine=engine, limits=limits)
    except JobFailed as failed:
        outcome = failed.reason.value
    else:
        # A single file has reached the kernel's limit before the folder was measured.
        problem = reply["problem"]
        assert isinstance(problem, dict)
        outcome = f"{problem['code']}: {problem['detail']}"
    assert outcome in {
        FailureReason.TEMPORARY_SPACE.value,
        "query_too_expensive: The statement takes more temporary disk space than allowed.",
    }
    assert names(workers.temporary) == set()


async def test_a_statement_that_does_not_fit_in_memory_uses_its_folder(workers: SqlWorkers) -> None:
    statement = "SELECT i FROM range(5_000_000) t(i) ORDER BY hash(i) DESC"
    engine: JsonObject = {"memory_mib": 48, "temporary_mib": 400, "threads": 1}
    limits = JobLimits(1024 * MIB, cpu_s=60, deadline_s=60, file_bytes=400 * MIB, open_files=64)
    rows = await workers.rows(statement, engine=engine, limits=limits, limit=3)
    assert len(rows) == 3
