"""Import and export."""

from __future__ import annotations

from contextlib import aclosing
from uuid import UUID

from data_plane.calls import Call
from data_plane.http import CallResponse, json_answer
from data_plane.lines import decoded, lines
from data_plane.request_reader import (
    canonical,
    parameters,
    refusing,
)
from documents.api.bulk import NDJSON
from documents.api.requests import (
    READ,
    WRITE,
    collection_name,
)
from documents.store import facts
from documents.transfer import exporting, importing, jobs
from foundation import bulk_budget, request_context
from foundation.environment import environment
from foundation.errors import FieldProblem, InvalidParameter, NotFound
from rillbase_native import Filter, Value

MODES = ("insert", "upsert", "skip")
DEFAULT_JOBS, MAX_JOBS = 50, 200


async def import_lines(call: Call) -> CallResponse:
    """POST import."""
    name = collection_name(call, WRITE)
    query = parameters(call, "mode", "resume")
    mode = query.get("mode", "insert")
    if mode not in MODES:
        raise _wrong("mode", f"One of {', '.join(MODES)}.")
    call.body.require(NDJSON)
    collection = await facts.find(call.tenant.id, name)
    resumed = _uuid("resume", query["resume"]) if "resume" in query else None
    encoding = call.head.headers.get("Content-Encoding", "").strip().lower()
    arriving = lines(decoded(call.body.parts(), encoding, environment().rillbase_import_max_bytes))
    async with aclosing(arriving), importing.tenants_imports(call.tenant.id):
        if resumed is None:
            progress = await jobs.begin(call.tenant.id, collection.id, mode)
        else:
            progress = await jobs.resume(call.tenant.id, collection.id, resumed, mode)
        work = importing.run(
            call.tenant.id, name, progress, arriving, call.principal, _is_abandoned
        )
        done = await bulk_budget.tenants.metered(call.tenant.id, work)
    location = f"/v1/collections/{name}/imports/{done.id}"
    return json_answer(done.describe(), headers={"Location": location})


def _is_abandoned() -> bool:
    """Return whether the client of the current request has disconnected."""
    connection = request_context.connection.get()
    return connection is not None and connection.is_closed


async def one_import(call: Call) -> CallResponse:
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
    query = parameters(call, "filter")
    with refusing("/filter"):
        text = query.get("filter")
        query_filter = Filter.parse(None if text is None else Value.parse(text.encode()))
    form = canonical(call)
    page = await exporting.first_page(call.tenant.id, name, query_filter, call.principal)
    lines_out = exporting.rest(
        call.tenant.id, name, query_filter, call.principal, page, canonical=form
    )
    return CallResponse(200, lines_out, media_type=NDJSON)


def _uuid(name: str, text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise _wrong(name, "Expected an id.") from None


def _wrong(name: str, detail: str) -> InvalidParameter:
    return InvalidParameter(errors=[FieldProblem(name, "invalid", detail)])
