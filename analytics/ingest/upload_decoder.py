"""Turns the body of an upload into segments, in a worker process. A failed upload leaves nothing.

This process opens the files and sets the worker's limits; it never reads the body itself. Uploads
of one tenant queue behind one another and do not delay other tenants' (`foundation.sandbox.pool`).
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict, TypeVar, cast

from analytics.facts import DatasetFacts
from analytics.ingest.body_spool import SpooledBody
from analytics.ingest.segments import UploadSegment
from analytics.ingest.worker_files import WorkerFiles
from analytics.rows.durable import storage_full
from foundation.environment import environment
from foundation.errors import (
    ApiError,
    BodyTooLarge,
    FieldProblem,
    InvalidParameter,
    InvalidUpload,
    RateLimited,
    StorageFull,
    Unavailable,
    UploadLimitExceeded,
)
from foundation.json_types import JsonObject
from foundation.per_loop import PerLoop
from foundation.sandbox.fair_queue import QueueFull
from foundation.sandbox.limits import JobLimits
from foundation.sandbox.pool import FailureReason, JobFailed, WorkerPool
from foundation.sandbox.template_client import TemplateFailed

T = TypeVar("T")

MIB = 1024 * 1024
#: Maximum number of a tenant's uploads waiting for a worker of one web server.
MAX_WAITING = 100
_IDLE_S = 60.0
#: Decoded bytes allowed for a small body, and per byte of a larger one.
_DECODED_BYTES, _DECODED_RATIO = 256 * MIB, 128
#: CPU time in seconds for a small body, per additional MiB, and at most.
_CPU_S, _CPU_S_A_MIB, _MAX_CPU_S = 10, 2, 600
#: Wall-clock limit as a multiple of CPU time, for waits for processors or the disk.
_DEADLINE_RATIO = 3
#: Overhead of a segment file besides its columns.
_FRAME_BYTES = 64 * MIB
_DECODER = "analytics.ingest.decoding:decode"
_PROBLEMS: dict[str, type[ApiError]] = {
    kind.code: kind for kind in (InvalidUpload, InvalidParameter, BodyTooLarge, UploadLimitExceeded)
}
_EXPLANATIONS = {
    FailureReason.MEMORY: "Decoding the upload takes more memory than allowed.",
    FailureReason.CPU_TIME: "Decoding the upload takes more CPU time than allowed.",
    FailureReason.DEADLINE: "Decoding the upload takes longer than allowed.",
}


def _new_pool() -> WorkerPool:
    slots = environment().rillbase_upload_workers
    return WorkerPool("uploads", _DECODER, slots=slots, max_waiting=MAX_WAITING, idle_s=_IDLE_S)


_pools = PerLoop(_new_pool)


class FieldError(TypedDict):
    """An invalid field, as reported by the worker."""

    pointer: str
    code: str
    detail: str


class Problem(TypedDict):
    """Why the worker rejects an upload."""

    code: str
    detail: str
    errors: list[FieldError]


@dataclass(frozen=True, slots=True)
class UploadParameters:
    """The table and operation in the request's URL."""

    media_type: str
    table: str | None
    op: str | None


async def receive(
    body: SpooledBody, address: UploadParameters, dataset: DatasetFacts
) -> list[UploadSegment]:
    """Return the durable segments of a body. Cancellation terminates the worker."""
    try:
        async with _pools.get().turn(str(dataset.tenant_id)):
            return await _decoded(body, address, dataset)
    except QueueFull:
        detail = f"{MAX_WAITING} uploads of the tenant are already waiting."
        raise RateLimited(detail, headers={"Retry-After": "5"}) from None
    except JobFailed as error:
        if error.reason is FailureReason.CRASH:
            raise InvalidUpload("The decoder failed while reading the upload.") from None
        raise UploadLimitExceeded(_EXPLANATIONS[error.reason]) from None
    except TemplateFailed:
        raise Unavailable("No worker can decode the upload at the moment. Retry.") from None


async def close() -> None:
    """Terminate the workers of this event loop."""
    if (pool := _pools.pop()) is not None:
        await pool.aclose()


def limits_for(body_bytes: int, max_decoded_bytes: int) -> JobLimits:
    """Return the limits for decoding a body. The body is mapped, not read into memory."""
    cpu_s = min(_CPU_S + body_bytes // MIB * _CPU_S_A_MIB, _MAX_CPU_S)
    return JobLimits(
        memory_bytes=environment().rillbase_upload_memory_mib * MIB + body_bytes,
        cpu_s=cpu_s,
        deadline_s=cpu_s * _DEADLINE_RATIO,
        file_bytes=min(max_decoded_bytes + _FRAME_BYTES, _own_file_bytes()),
    )


def max_decoded_bytes(body_bytes: int) -> int:
    """Return the maximum size of a body's rows once they are columns."""
    allowed = _DECODED_BYTES + body_bytes * _DECODED_RATIO
    return min(allowed, environment().rillbase_import_max_bytes)


def _own_file_bytes() -> int:
    """Return this process's file size limit; a worker's limit cannot exceed it."""
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return 2**62 if soft == resource.RLIM_INFINITY else soft


async def _decoded(
    body: SpooledBody, address: UploadParameters, dataset: DatasetFacts
) -> list[UploadSegment]:
    files, is_done = WorkerFiles(body.path, dataset), False
    try:
        await _to_its_end(files.open)
        rows = await _run(body, address, dataset, files)
        segments = await _to_its_end(lambda: files.store(rows))
        is_done = True
        return segments
    finally:
        await _to_its_end(lambda: files.close(keep=is_done))


async def _run(
    body: SpooledBody, address: UploadParameters, dataset: DatasetFacts, files: WorkerFiles
) -> list[int]:
    """Run a worker that writes the files; return the row count of each."""
    max_bytes = max_decoded_bytes(body.size)
    request: JsonObject = {
        "definition": dataset.definition,
        "media_type": address.media_type,
        "table": address.table,
        "op": address.op,
        "max_bytes": max_bytes,
        "outputs": [[output.table, output.id_key] for output in files.outputs],
    }
    result = await _pools.get().run(request, files.descriptors, limits_for(body.size, max_bytes))
    if "problem" in result:
        raise _refusal(cast("Problem", result["problem"]))
    return cast("list[int]", result["rows"])


def _refusal(problem: Problem) -> ApiError:
    if problem["code"] == StorageFull.code:
        return storage_full()
    errors = [FieldProblem(e["pointer"], e["code"], e["detail"]) for e in problem["errors"]]
    return _PROBLEMS[problem["code"]](problem["detail"], errors=errors)


async def _to_its_end(work: Callable[[], T]) -> T:
    """Run in a thread. If cancelled, wait for it, since it opens, stores or closes files."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
