"""The progress of an import.

The counts are stored in the transaction that writes the documents, so an interrupted job resumes
with the first line that was not committed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from uuid import UUID

from documents.store.database import pool, scope
from foundation.errors import Conflict, NotFound
from foundation.ids import uuid7
from foundation.json_types import JsonObject, JsonValue
from foundation.postgres import Statement, StatementResult
from foundation.postgres.session import Oid, Step, int8

MAX_ERRORS = 1_000

#: A job without progress for a minute has lost its process.
_SELECT = (
    "SELECT id, mode, CASE WHEN state = 'running' AND updated_at < now() - interval '60 s' "
    "THEN 'interrupted' ELSE state END, lines_done, written, skipped, failed, errors::text, "
    "created_at, updated_at FROM documents_importjob "
)
_CREATE = Statement(
    "INSERT INTO documents_importjob (id, tenant_id, collection_id, mode, state, lines_done, "
    "written, skipped, failed, errors, created_at, updated_at) "
    "VALUES ($1, $2, $3, $4, 'running', 0, 0, 0, 0, '[]', now(), now())",
    (Oid.UUID, Oid.UUID, Oid.UUID, Oid.TEXT),
)
_RESUME = Statement(
    "UPDATE documents_importjob SET state = 'running', updated_at = now() "
    "WHERE id = $1 AND collection_id = $2 AND (state = 'interrupted' "
    "OR (state = 'running' AND updated_at < now() - interval '60 s'))",
    (Oid.UUID, Oid.UUID),
)
_NOTE = Statement(
    "UPDATE documents_importjob SET state = $2, lines_done = $3, written = $4, skipped = $5, "
    "failed = $6, errors = $7::jsonb, updated_at = now() WHERE id = $1 AND lines_done <= $3",
    (Oid.UUID, Oid.TEXT, Oid.INT8, Oid.INT8, Oid.INT8, Oid.INT8, Oid.TEXT),
)
_FIND = Statement(
    _SELECT + "WHERE collection_id = $1 AND id = $2",
    (Oid.UUID, Oid.UUID),
)
_LIST = Statement(
    _SELECT
    + "WHERE collection_id = $1 AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3",
    (Oid.UUID, Oid.UUID, Oid.INT8),
)


@dataclass(slots=True)
class ImportProgress:
    """An import's counts; `lines_done` counts every line, empty ones too."""

    id: UUID
    mode: str
    state: str = "running"
    lines_done: int = 0
    written: int = 0
    skipped: int = 0
    failed: int = 0
    errors: list[JsonValue] = field(default_factory=list)
    created_ms: int = 0
    updated_ms: int = 0

    def store_statement(self) -> Step:
        """Return the statement that stores the counts."""
        return _NOTE, (
            self.id.bytes,
            self.state.encode(),
            int8(self.lines_done),
            int8(self.written),
            int8(self.skipped),
            int8(self.failed),
            json.dumps(self.errors).encode(),
        )

    def describe(self) -> JsonObject:
        return {
            "id": str(self.id),
            "mode": self.mode,
            "state": self.state,
            "lines": self.lines_done,
            "written": self.written,
            "skipped": self.skipped,
            "failed": self.failed,
            "errors": self.errors,
        }


async def begin(tenant_id: UUID, collection_id: UUID, mode: str) -> ImportProgress:
    """Create a job."""
    progress = ImportProgress(uuid7(), mode)
    async with pool().session(tenant_id) as session:
        await session.run([scope(tenant_id), creation(tenant_id, collection_id, progress)])
    return progress


def creation(tenant_id: UUID, collection_id: UUID, progress: ImportProgress) -> Step:
    """Return the statement that creates a job."""
    names = (progress.id.bytes, tenant_id.bytes, collection_id.bytes)
    return _CREATE, (*names, progress.mode.encode())


async def resume(tenant_id: UUID, collection_id: UUID, job_id: UUID, mode: str) -> ImportProgress:
    """Resume a job that was interrupted."""
    progress = await find(tenant_id, collection_id, job_id)
    if progress.mode != mode:
        raise Conflict(f"The import's mode is {progress.mode}.")
    async with pool().session(tenant_id) as session:
        _, resumed = await session.run(
            [scope(tenant_id), (_RESUME, (job_id.bytes, collection_id.bytes))]
        )
    if not resumed.affected:
        raise Conflict(
            f"The import is {progress.state}; only an interrupted import can be resumed."
        )
    progress.state = "running"
    return progress


async def find(tenant_id: UUID, collection_id: UUID, job_id: UUID) -> ImportProgress:
    async with pool().session(tenant_id) as session:
        _, rows = await session.run(
            [scope(tenant_id), (_FIND, (collection_id.bytes, job_id.bytes))]
        )
    if not rows.rows:
        raise NotFound("The import does not exist.")
    return _progress(rows, 0)


async def latest(
    tenant_id: UUID, collection_id: UUID, before: UUID | None, limit: int
) -> list[ImportProgress]:
    """Return jobs, the newest first."""
    parameters = (collection_id.bytes, before.bytes if before else None, int8(limit))
    async with pool().session(tenant_id) as session:
        _, rows = await session.run([scope(tenant_id), (_LIST, parameters)])
    return [_progress(rows, number) for number in range(rows.rows)]


async def store_counts(tenant_id: UUID, progress: ImportProgress) -> None:
    """Store the counts outside any write, unless another call has continued the job."""
    async with pool().session(tenant_id) as session:
        await session.run([scope(tenant_id), progress.store_statement()])


def _progress(rows: StatementResult, number: int) -> ImportProgress:
    return ImportProgress(
        id=rows.uuid(number, 0),
        mode=rows.text(number, 1),
        state=rows.text(number, 2),
        lines_done=rows.integer(number, 3),
        written=rows.integer(number, 4),
        skipped=rows.integer(number, 5),
        failed=rows.integer(number, 6),
        errors=json.loads(rows.text(number, 7)),
        created_ms=rows.time_ms(number, 8),
        updated_ms=rows.time_ms(number, 9),
    )
