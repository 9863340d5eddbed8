"""Calls that upload rows: in one request, or opened, appended to and committed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from analytics.api.dataset_access import dataset_of, in_scope, in_thread, while_connected
from analytics.api.upload_json import upload_shown
from analytics.facts import READ, WRITE, DatasetFacts
from analytics.ingest import uploads
from analytics.ingest.segments import UploadSegment, remove
from analytics.ingest.upload_decoder import UploadParameters, receive
from analytics.media_types import FILE_TYPES, MEDIA_TYPES, NDJSON
from analytics.models import Run, Upload
from analytics.rows.durable import local_folder, storing
from data_plane.body_spool import spooled
from data_plane.calls import Call
from data_plane.http import CallResponse, json_answer
from data_plane.lines import decoded
from data_plane.request_reader import flag, parameters
from documents.api.transfer import preview_of
from documents.transfer.formats import PARAMETERS, read_format
from foundation.api.idempotency import HEADER, check_form, digest
from foundation.environment import environment
from foundation.errors import ApiError, FieldProblem, InvalidParameter
from foundation.ids import uuid7
from foundation.json_types import JsonObject
from tenants import usage

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z")
_PART_CHARS = 32


async def upload(call: Call) -> CallResponse:
    """POST uploads: upload in one request, or with `open=true` open an upload."""
    query = parameters(call, "id", "table", "op", "open", *PARAMETERS)
    dataset = await dataset_of(call, WRITE)
    name = _name(call, query.get("id"))
    if flag(query.get("open"), "open"):
        row, is_new = await in_scope(call, lambda: uploads.do_open(dataset, name))
        return await _answer(call, dataset, row, status=201 if is_new else 200)

    def commit(segments: list[UploadSegment], content: bytes) -> tuple[Upload, bool]:
        return uploads.do_upload(dataset, name, content, segments)

    def find_earlier(content: bytes) -> Upload | None:
        earlier = uploads.find_optional(dataset, name)
        return None if earlier is None else uploads.check_repeated(earlier, content)

    row, is_new = await _receive(call, dataset, find_earlier, commit)
    return await _answer(call, dataset, row, status=201 if is_new else 200)


async def preview(call: Call) -> CallResponse:
    """POST uploads:preview: the columns and first rows of a file, without uploading it."""
    await dataset_of(call, WRITE)
    return json_answer(await preview_of(call))


async def append(call: Call) -> CallResponse:
    """POST uploads/{upload}:append."""
    parameters(call, "table", "op", *PARAMETERS)
    dataset = await dataset_of(call, WRITE)
    name, part = call.parameters["upload"], _part(call)

    def add(segments: list[UploadSegment], content: bytes) -> tuple[Upload, bool]:
        part_id = f"{part}:{content.hex()[:_PART_CHARS]}" if part else ""
        return uploads.do_append(dataset, name, part, part_id, segments)

    await in_scope(call, lambda: uploads.find(dataset, name))
    row, _ = await _receive(call, dataset, lambda _: None, add)
    return await _answer(call, dataset, row)


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
    row, paths = await in_scope(call, lambda: uploads.do_abort(dataset, name))
    await in_thread(lambda: remove(dataset.folder, paths))
    return await _answer(call, dataset, row)


async def read(call: Call) -> CallResponse:
    """GET uploads/{upload}."""
    parameters(call)
    dataset, name = await dataset_of(call, READ), call.parameters["upload"]
    return await _answer(call, dataset, await in_scope(call, lambda: uploads.find(dataset, name)))


async def _receive(
    call: Call,
    dataset: DatasetFacts,
    find_earlier: Callable[[bytes], Upload | None],
    register: Callable[[list[UploadSegment], bytes], tuple[Upload, bool]],
) -> tuple[Upload, bool]:
    """Decode a body to segments, and register them in PostgreSQL."""
    media_type = call.body.media_type if "content-type" in call.head.headers else NDJSON
    if media_type not in MEDIA_TYPES:
        call.body.require(*MEDIA_TYPES)
    query = call.head.query
    form = {name: query[name] for name in PARAMETERS if name in query}
    _check_form(media_type, form)
    address = UploadParameters(media_type, query.get("table"), query.get("op"), form)
    encoding = call.head.headers.get("Content-Encoding", "").strip().lower()
    parts = decoded(call.body.parts(), encoding, environment().rillbase_import_max_bytes)
    folder = dataset.folder
    incoming = folder / "incoming" if isinstance(folder, Path) else local_folder()
    async with spooled(parts, incoming, storing) as body:
        earlier = await in_scope(call, lambda: find_earlier(body.digest))
        if earlier is not None:
            return earlier, False
        segments = await while_connected(call, receive(body, address, dataset))
        paths = [segment.path for segment in segments]
        try:
            row, is_new = await in_scope(call, lambda: register(segments, body.digest))
        except ApiError:
            # After any other error the transaction may have committed: leave the files to the
            # collector.
            await in_thread(lambda: remove(dataset.folder, paths))
            raise
        if is_new:
            usage.count(
                dataset.tenant_id, "analytics_rows", sum(s.rows for s in segments if s.table)
            )
        else:
            await in_thread(lambda: remove(dataset.folder, paths))
        return row, is_new


def _check_form(media_type: str, form: dict[str, str]) -> None:
    """Raise `InvalidParameter` for a file that cannot be read in this way."""
    columns = read_format(media_type, form).columns
    if columns is not None and media_type not in FILE_TYPES:
        detail = f"Not for {media_type}."
    elif any(column.type is not None for column in columns or ()):
        detail = "The table determines the types of its columns."
    else:
        return
    raise InvalidParameter(errors=[FieldProblem("columns", "invalid", detail)])


def _name(call: Call, name: str | None) -> str:
    """Return the upload's id: from the caller, or derived from the idempotency key."""
    if name is not None:
        if not _NAME.match(name):
            detail = "Expected 1 to 200 letters, digits, dots, dashes and underscores."
            raise InvalidParameter(errors=[FieldProblem("id", "invalid", detail)])
        return name
    part = _part(call)
    return f"key-{part}" if part else str(uuid7())


def _part(call: Call) -> str:
    """Return a digest of the call's idempotency key; empty without one."""
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
