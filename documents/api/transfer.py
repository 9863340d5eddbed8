"""Import and export."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from uuid import UUID

from data_plane.calls import Call
from data_plane.http import CallResponse, json_answer
from data_plane.lines import decoded
from data_plane.request_reader import (
    canonical,
    flag,
    parameters,
    read_body,
    refusing,
)
from documents.api.requests import (
    READ,
    WRITE,
    claim,
    collection_name,
)
from documents.store import facts
from documents.store.claims import WriteClaim
from documents.transfer import exporting, importing, jobs
from documents.transfer.claimed_import import ClaimedImport
from documents.transfer.formats import MEDIA_TYPES, PARAMETERS, PARQUET, read_format
from documents.transfer.output import OUTPUT_PARAMETERS, read_output
from documents.transfer.preview import FileSample, parquet_preview, preview
from documents.transfer.records import records
from foundation import bulk_budget, request_context
from foundation.api.idempotency import digest
from foundation.environment import environment
from foundation.errors import FieldProblem, InvalidParameter, NotFound
from foundation.json_types import JsonObject
from rillbase_native import Filter, Value

MODES = ("insert", "upsert", "skip")
DEFAULT_JOBS, MAX_JOBS = 50, 200
MAX_SAMPLE_BYTES = 1024 * 1024


async def import_file(call: Call) -> CallResponse:
    """POST import."""
    name = collection_name(call, WRITE)
    query = parameters(call, "mode", "resume", *PARAMETERS)
    mode = query.get("mode", "insert")
    if mode not in MODES:
        raise _wrong("mode", f"One of {', '.join(MODES)}.")
    form = read_format(call.body.require(*MEDIA_TYPES), query)
    # The job refers to the collection's row, which a former one with this name may still have.
    collection = await facts.find(call.tenant.id, name, fresh=True)
    resumed = _uuid("resume", query["resume"]) if "resume" in query else None
    encoding = call.head.headers.get("Content-Encoding", "").strip().lower()
    max_bytes = environment().rillbase_import_max_bytes
    claimed = await _claimed(call)
    body = call.body.parts() if claimed is None else claimed.body.parts()
    parts = decoded(body, encoding, max_bytes)
    if claimed is not None and (response := await claimed.response(parts)) is not None:
        return response
    arriving = records(call.tenant.id, parts, form)
    async with aclosing(arriving), importing.tenants_imports(call.tenant.id):
        if resumed is not None:
            progress = await jobs.resume(call.tenant.id, collection.id, resumed, mode)
        elif claimed is not None:
            progress = await claimed.begin(call.tenant.id, collection.id, mode)
        else:
            progress = await jobs.begin(call.tenant.id, collection.id, mode)
        run = importing.ImportRun(call.tenant.id, name, call.principal, progress, claimed)
        work = run.run(arriving, _is_abandoned)
        done = await bulk_budget.tenants.metered(call.tenant.id, work)
    location = f"/v1/collections/{name}/imports/{done.id}"
    response = json_answer(done.describe(), headers={"Location": location})
    if claimed is not None:
        await claimed.end(call.tenant.id, response)
    return response


async def _claimed(call: Call) -> ClaimedImport | None:
    """Return the idempotency key of an import."""
    begun = claim(call, call.head.headers.get("Content-Encoding", "").encode())
    if begun is None:
        return None

    def claim_of(file_digest: str) -> WriteClaim:
        return replace(begun, request_hash=digest(begun.request_hash, file_digest))

    return await ClaimedImport.of(claim_of, call.body.parts())


def _is_abandoned() -> bool:
    """Return whether the client of the current request has disconnected."""
    connection = request_context.connection.get()
    return connection is not None and connection.is_closed


async def preview_import(call: Call) -> CallResponse:
    """POST import:preview."""
    await facts.find(call.tenant.id, collection_name(call, WRITE))
    return json_answer(await preview_of(call))


async def preview_of(call: Call) -> JsonObject:
    """Return what an import would make of the file that begins with the body."""
    query = parameters(call, "whole", *PARAMETERS)
    form = read_format(call.body.require(*MEDIA_TYPES), query)
    is_whole = flag(query.get("whole"), "whole")
    if form.media_type == PARQUET:
        return await parquet_preview(call.tenant.id, call.body.parts(), form, is_whole=is_whole)
    content = await read_body(call, *MEDIA_TYPES, max_bytes=MAX_SAMPLE_BYTES)
    sample = FileSample(content, is_whole)
    return await asyncio.to_thread(preview, sample, form, query.get("delimiter"))


async def import_status(call: Call) -> CallResponse:
    """GET imports/{id}."""
    name = collection_name(call, WRITE)
    parameters(call)
    collection = await facts.find(call.tenant.id, name)
    try:
        job_id = UUID(call.parameters["id"])
    except ValueError:
        raise NotFound("The import does not exist.") from None
    progress = await jobs.find(call.tenant.id, collection.id, job_id)
    return json_answer(progress.describe())


async def imports(call: Call) -> CallResponse:
    """GET imports."""
    name = collection_name(call, WRITE)
    query = parameters(call, "cursor", "limit")
    collection = await facts.find(call.tenant.id, name)
    limit = query.get("limit", str(DEFAULT_JOBS))
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= MAX_JOBS):
        raise _wrong("limit", f"Expected an integer from 1 to {MAX_JOBS}.")
    before = _uuid("cursor", query["cursor"]) if "cursor" in query else None
    jobs_page = await jobs.latest(call.tenant.id, collection.id, before, int(limit) + 1)
    page = jobs_page[: int(limit)]
    return json_answer(
        {
            "items": [progress.describe() for progress in page],
            "next_cursor": str(page[-1].id) if len(jobs_page) > len(page) else None,
        }
    )


async def export(call: Call) -> CallResponse:
    """GET export."""
    name = collection_name(call, READ)
    query = parameters(call, "filter", *OUTPUT_PARAMETERS)
    output = read_output(query, call.head.headers.get("Accept", ""))
    with refusing("/filter"):
        text = query.get("filter")
        query_filter = Filter.parse(None if text is None else Value.parse(text.encode()))
    documents = exporting.MatchingDocuments(call.tenant.id, name, query_filter, call.principal)
    body = await exporting.export(documents, output, canonical=canonical(call))
    return CallResponse(200, body, output.headers(name), media_type=output.media_type)


def _uuid(name: str, text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise _wrong(name, "Expected an id.") from None


def _wrong(name: str, detail: str) -> InvalidParameter:
    return InvalidParameter(errors=[FieldProblem(name, "invalid", detail)])
