"""A worker of SQL without a server: a folder with files, and statements over them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from analytics.rows.sorted_file import write_sorted
from analytics.schema import tables_of
from foundation.json_types import JsonObject
from foundation.sandbox.fair_queue import FairQueue
from foundation.sandbox.limits import JobLimits
from foundation.sandbox.pool import WorkerPool
from foundation.sandbox.session import Session

MIB = 1024 * 1024
WORK = "analytics.sql.worker:execute"
#: The same engine without its allow-list (`tests.analytics.unchecked_sql`).
UNCHECKED = "tests.analytics.unchecked_sql:execute"
DEFINITION = json.dumps(
    {
        "tables": {
            "orders": {
                "columns": {"id": "int64", "customer": "string", "count": "int32"},
                "key": ["id"],
                "views": {},
            }
        },
        "id_keys": {},
    }
)
LIMITS = JobLimits(
    memory_bytes=1024 * MIB, cpu_s=20, deadline_s=60, file_bytes=64 * MIB, open_files=256
)
ENGINE: JsonObject = {"memory_mib": 256, "temporary_mib": 64, "threads": 2}


class SqlWorkers:
    """Workers that may read one folder, which has a table of some rows."""

    def __init__(self, folder: Path, work: str = WORK) -> None:
        self.data = folder / "data"
        self.temporary = folder / "temporary"
        for path in (self.data, self.temporary):
            path.mkdir(parents=True)
        self.pool = WorkerPool("tests", work, FairQueue(4, 10), idle_s=600)
        self.table = tables_of(DEFINITION)["orders"]

    def write_rows(self, count: int) -> None:
        rows = pa.table(
            {
                "id": pa.array(range(count), pa.int64()),
                "customer": [f"c{number % 7}" for number in range(count)],
                "count": pa.array([number % 100 for number in range(count)], pa.int32()),
            },
            schema=self.table.arrow,
        )
        write_sorted(self.data / "orders.parquet", self.table.arrow, ("id",), [rows])

    def plans(self) -> JsonObject:
        file: JsonObject = {
            "path": "orders.parquet",
            "stage": "authority",
            "view": "",
            "rows": 1,
            "lowest": [0],
            "highest": [2**62],
            "part": None,
        }
        exists = (self.data / "orders.parquet").exists()
        authority: list[Any] = [file] if exists else []
        return {"orders": {"authority": authority, "later": [], "id_keys": {}}}

    @asynccontextmanager
    async def session(self, limits: JobLimits = LIMITS) -> AsyncIterator[Session]:
        async with self.pool.session(limits, self.data, self.temporary) as session:
            yield session

    async def run(
        self,
        sql: str,
        *,
        limits: JobLimits = LIMITS,
        engine: JsonObject = ENGINE,
        unlocked: bool = False,
        **more: Any,
    ) -> tuple[JsonObject, bytes]:
        """Return the worker's last message, and what it streamed."""
        async with self.session(limits) as session:
            first: JsonObject = {"sql": sql, "definition": DEFINITION, "unlocked": unlocked}
            needs = await session.ask(first)
            if "tables" not in needs:
                return needs, b""
            plans = {n: p for n, p in self.plans().items() if n in needs["tables"]}  # type: ignore[operator]
            request: JsonObject = {
                "plans": plans,
                "state": 1,
                "freshness_s": 0.0,
                "engine": "duckdb",
                "parameters": [],
                "media_type": "application/json",
                "limit": 10_000,
                "limits": engine,
                **more,
            }
            reply = await session.ask(request)
            streamed = bytearray()
            if "ready" in reply:
                while isinstance(part := await session.receive(), bytes):
                    streamed += part
                reply = part
            return reply, bytes(streamed)

    async def rows(self, sql: str, **more: Any) -> list[Any]:
        reply, streamed = await self.run(sql, **more)
        assert "rows" in reply, reply
        rows: list[Any] = json.loads(streamed)["rows"]
        return rows

    async def aclose(self) -> None:
        await self.pool.aclose()
