"""Turns an upload's body into segments, in a worker process. A failed upload leaves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict, cast

from analytics.facts import DatasetFacts
from analytics.ingest.segments import UploadSegment
from analytics.ingest.worker_files import WorkerFiles
from analytics.rows.durable import storage_full
from data_plane.body_spool import SpooledBody
from data_plane.file_workers import MIB, FileWorkers, limits_for, run_to_completion
from foundation.environment import environment
from foundation.errors import (
    ApiError,
    BodyTooLarge,
    FieldProblem,
    InvalidBody,
    InvalidParameter,
    InvalidUpload,
    StorageFull,
    UploadLimitExceeded,
)
from foundation.json_types import JsonObject

#: Decoded bytes allowed for a small body, and per byte of a larger one.
_DECODED_BYTES, _DECODED_RATIO = 256 * MIB, 128
#: Overhead of a segment file besides its columns.
_FRAME_BYTES = 64 * MIB
_PROBLEMS: dict[str, type[ApiError]] = {
    kind.code: kind
    for kind in (InvalidUpload, InvalidBody, InvalidParameter, BodyTooLarge, UploadLimitExceeded)
}

_workers = FileWorkers("uploads", "analytics.ingest.decoding:decode", "upload", InvalidUpload)
close = _workers.close


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
    #: The parameters that describe the file (`documents.transfer.formats`).
    form: Mapping[str, str]


async def receive(
    body: SpooledBody, address: UploadParameters, dataset: DatasetFacts
) -> list[UploadSegment]:
    """Return the durable segments of a body. Cancellation terminates the worker."""
    async with _workers.turn(dataset.tenant_id):
        files, is_done = WorkerFiles(body.path, dataset), False
        try:
            await run_to_completion(files.open)
            rows = await _run(body, address, dataset, files)
            segments = await run_to_completion(lambda: files.store(rows))
            is_done = True
            return segments
        finally:
            await run_to_completion(lambda: files.close(keep=is_done))


def max_decoded_bytes(body_bytes: int) -> int:
    """Return the maximum size of a body's rows once they are columns."""
    allowed = _DECODED_BYTES + body_bytes * _DECODED_RATIO
    return min(allowed, environment().rillbase_import_max_bytes)


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
        "form": dict(address.form),
        "max_bytes": max_bytes,
        "outputs": [[output.table, output.id_key] for output in files.outputs],
    }
    limits = limits_for(body.size, max_bytes + _FRAME_BYTES)
    result = await _workers.run(request, files.descriptors, limits)
    if "problem" in result:
        raise _refusal(cast("Problem", result["problem"]))
    return cast("list[int]", result["rows"])


def _refusal(problem: Problem) -> ApiError:
    if problem["code"] == StorageFull.code:
        return storage_full()
    errors = [FieldProblem(e["pointer"], e["code"], e["detail"]) for e in problem["errors"]]
    return _PROBLEMS[problem["code"]](problem["detail"], errors=errors)
