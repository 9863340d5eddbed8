"""Calls that upload rows: in one request, or opened, appended to and committed."""

from __future__ import annotations

import re
from collections.abc import Callable

from analytics.api.dataset_access import dataset_of, in_scope, in_thread, while_connected
from analytics.api.upload_json import upload_shown
from analytics.facts import READ, WRITE, DatasetFacts
from analytics.ingest import uploads
from analytics.ingest.body_spool import spooled
from analytics.ingest.segments import UploadSegment, remove
from analytics.ingest.upload_decoder import UploadParameters, receive
from analytics.media_types import MEDIA_TYPES, NDJSON
from analytics.models import Run, Upload
from data_plane.calls import Call
from data_plane.http import CallResponse, json_answer
from data_plane.request_reader import flag, parameters
from foundation.api.idempotency import HEADER, check_form, digest
from foundation.errors import ApiError, FieldProblem, InvalidParameter
from foundation.ids import uuid7
from foundation.json_types import JsonObject
from tenants import usage

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z")
_PART_CHARS = 32


async def upload(call: Call) -> CallResponse:
    """POST uploads: a whole upload, or with `open=true` the beginning of one."""
    given = parameters(call, "id", "table", "op", "open")
    dataset = await dataset_of(call, WRITE)
    name = _name(call, given.get("id"))
    if flag(given.get("open"), "open"):
        opened, is_new = await in_scope(call, lambda: uploads.do_open(dataset, name))
        return await _answer(call, dataset, opened, status=201 if is_new else 200)

    def commit(segments: list[UploadSegment], content: bytes) -> tuple[Upload, bool]:
        return uploads.do_upload(dataset, name, content, segments)

    def before(content: bytes) -> Upload | None:
        earlier = uploads.known(dataset, name)
        return None if earlier is None else uploads.repeated(earlier, content)

    done, is_new = await _received(call, dataset, before, commit)
    return await _answer(call, dataset, done, status=201 if is_new else 200)


async def append(call: Call) -> CallResponse:
    """POST uploads/{upload}:append."""
    parameters(call, "table", "op")
    dataset = await dataset_of(call, WRITE)
    name, part = call.parameters["upload"], _part(call)

    def add(segments: list[UploadSegment], content: bytes) -> tuple[Upload, bool]:
        named = f"{part}:{content.hex()[:_PART_CHARS]}" if part else ""
        return uploads.do_append(dataset, name, part, named, segments)

    await in_scope(call, lambda: uploads.find(dataset, name))
    added, _ = await _received(call, dataset, lambda _: None, add)
    return await _answer(call, dataset, added)


async def commit(call: Call) -> CallResponse:
    """POST uploads/{upload}:commit."""
    parameters(call)
    dataset, name = await dataset_of(call, WRITE), call.parameters["upload"]
    return await _answer(
        call, dataset, await in_scope(call, lambda: uploads.do_commit(dataset, name))
    )


async def abort(call: Call) -> CallResponse:
    """POST uploads/{upload}:abort."""
    parameters(call)
    dataset, name = await dataset_of(call, WRITE), call.parameters["upload"]
    given_up, paths = await in_scope(call, lambda: uploads.do_abort(dataset, name))
    await in_thread(lambda: remove(dataset.folder, paths))
    return await _answer(call, dataset, given_up)


async def read(call: Call) -> CallResponse:
    """GET uploads/{upload}."""
    parameters(call)
    dataset, name = await dataset_of(call, READ), call.parameters["upload"]
    return await _answer(call, dataset, await in_scope(call, lambda: uploads.find(dataset, name)))


async def _received(
    call: Call,
    dataset: DatasetFacts,
    before: Callable[[bytes], Upload | None],
    register: Callable[[list[UploadSegment], bytes], tuple[Upload, bool]],
) -> tuple[Upload, bool]:
    """Read a body, make segments of it, and tell PostgreSQL of them."""
    media_type = call.body.media_type if "content-type" in call.head.headers else NDJSON
    if media_type not in MEDIA_TYPES:
        call.body.require(*MEDIA_TYPES)
    given = call.head.query
    address = UploadParameters(media_type, given.get("table"), given.get("op"))
    encoding = call.head.headers.get("Content-Encoding", "").strip().lower()
    async with spooled(call.body, encoding, dataset.folder) as body:
        earlier = await in_scope(call, lambda: before(body.digest))
        if earlier is not None:
            return earlier, False
        segments = await while_connected(call, receive(body, address, dataset))
        paths = [segment.path for segment in segments]
        try:
            done, is_new = await in_scope(call, lambda: register(segments, body.digest))
        except ApiError:
            # Any other failure may have committed: those files are left to the collector.
            await in_thread(lambda: remove(dataset.folder, paths))
            raise
        if is_new:
            usage.count(
                dataset.tenant_id, "analytics_rows", sum(s.rows for s in segments if s.table)
            )
        else:
            await in_thread(lambda: remove(dataset.folder, paths))
        return done, is_new


def _name(call: Call, given: str | None) -> str:
    """Return what the upload is called: as the caller says, or after the idempotency key."""
    if given is not None:
        if not _NAME.match(given):
            detail = "Expected 1 to 200 letters, digits, dots, dashes and underscores."
            raise InvalidParameter(errors=[FieldProblem("id", "invalid", detail)])
        return given
    part = _part(call)
    return f"key-{part}" if part else str(uuid7())


def _part(call: Call) -> str:
    """Return a name for what the call's idempotency key stands for; empty without one."""
    key = call.head.headers.get(HEADER)
    if key is None:
        return ""
    check_form(key)
    return digest(call.principal.actor, call.head.path, key).hex()[:_PART_CHARS]


async def _answer(
    call: Call, dataset: DatasetFacts, row: Upload, *, status: int = 200
) -> CallResponse:
    def shown() -> JsonObject:
        run = None
        if row.number is not None:
            run = Run.objects.filter(
                dataset_id=dataset.id,
                superseded_at=None,
                first__lte=row.number,
                last__gte=row.number,
            ).first()
        return upload_shown(row, run)

    return json_answer(await in_scope(call, shown), status=status)
