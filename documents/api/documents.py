"""One document at a time."""

from __future__ import annotations

import time
from collections.abc import Callable

from data_plane.calls import Call
from data_plane.http import CallResponse
from data_plane.request_reader import (
    as_object,
    canonical,
    flag,
    parameters,
    read_body,
    refusing,
    required,
)
from documents.api.requests import (
    READ,
    WRITE,
    DocumentBody,
    claim,
    collection_name,
    expected,
    path_id,
    read_document,
)
from documents.store import facts, reads
from documents.store.access import access_of
from documents.store.stored_document import StoredDocument
from documents.store.write import WriteCall
from documents.store.writer import write
from foundation.api.preconditions import etag, versions
from foundation.errors import InvalidBody, NotFound
from rillbase_native import Operation, Operations, Outcomes, Value, envelope, format_id, id_key

MERGE_PATCH = "application/merge-patch+json"
MAX_IDS = 1_000
#: As many ids of 1,024 bytes, and of 512 two-byte characters that are all escaped. A larger body
#: could hold millions of ids, each of which takes many times its bytes before they are counted.
MAX_IDS_BYTES = 3 * 1024 * 1024


async def insert(call: Call) -> CallResponse:
    """POST documents."""
    name = collection_name(call, WRITE)
    parameters(call)
    body = await read_document(call)
    with refusing():
        if body.value.kind != "object":
            raise InvalidBody("A document must be an object.")
        operation = Operation.insert(body.value)
    return await _write(call, name, operation, body)


async def get(call: Call) -> CallResponse:
    """GET documents/{id}."""
    name = collection_name(call, READ)
    parameters(call)
    _, key = path_id(call)
    documents = await reads.get(call.tenant.id, name, [key], call.principal, _now_ms())
    document = documents.get(key)
    if document is None:
        raise NotFound("The document does not exist.")
    condition = call.head.headers.get("If-None-Match")
    headers = {"ETag": etag(document.version)}
    if condition is not None and (
        condition.strip() == "*" or document.version in versions(condition, "If-None-Match")
    ):
        return CallResponse(304, headers=headers)
    return CallResponse(200, shown(document, canonical_form=canonical(call)), headers)


async def get_many(call: Call) -> CallResponse:
    """POST documents:get."""
    name = collection_name(call, READ)
    ids = required(as_object(await read_body(call, max_bytes=MAX_IDS_BYTES), ("ids",)), "ids")
    if ids.kind != "array" or len(ids.items()) > MAX_IDS:
        raise InvalidBody(f"`ids` must be a list of at most {MAX_IDS} ids.")
    with refusing("/ids"):
        keys = [id_key(identity) for identity in ids.items()]
    documents = await reads.get(call.tenant.id, name, keys, call.principal, _now_ms())
    form = canonical(call)
    items = [shown(documents[key], canonical_form=form) for key in keys if key in documents]
    return CallResponse(200, b'{"items":[' + b",".join(items) + b"]}")


async def replace(call: Call) -> CallResponse:
    """PUT documents/{id}."""
    name = collection_name(call, WRITE)
    parameters(call)
    identity, _ = path_id(call)
    body = await read_document(call)
    with refusing():
        if body.value.kind != "object":
            raise InvalidBody("A document must be an object.")
        operation = Operation.replace(identity, body.value)
    return await _write(call, name, operation, body)


async def update(call: Call) -> CallResponse:
    """PATCH documents/{id}."""
    name = collection_name(call, WRITE)
    upsert = flag(parameters(call, "upsert", "array_filters").get("upsert"), "upsert")
    identity, _ = path_id(call)
    body = await read_document(call, "application/json", MERGE_PATCH)
    with refusing():
        if body.value.kind != "object":
            raise InvalidBody("An update must be an object.")
        if call.body.media_type == MERGE_PATCH:
            operation = Operation.merge(identity, body.value, upsert=upsert)
        else:
            filters = call.head.query.get("array_filters")
            operation = Operation.update(
                identity,
                body.value,
                array_filters=None if filters is None else Value.parse(filters.encode()),
                upsert=upsert,
            )
    return await _write(call, name, operation, body, reveals=True)


async def delete(call: Call) -> CallResponse:
    """DELETE documents/{id}."""
    name = collection_name(call, WRITE)
    parameters(call)
    identity, _ = path_id(call)
    with refusing():
        operation = Operation.delete(identity)
    return await _write(call, name, operation, b"")


async def _write(
    call: Call,
    name: str,
    operation: Operation,
    body: bytes | DocumentBody,
    *,
    reveals: bool = False,
) -> CallResponse:
    """Write one document and respond with it. `reveals`: the document contains more than the caller
    has sent, so returning it requires the right to read it.
    """
    may_read = not reveals or READ in call.principal.scopes
    readable = await _readable(call, name) if may_read else _unreadable
    form = canonical(call)
    written = await write(
        WriteCall(
            call.tenant.id,
            name,
            Operations([operation]),
            expected=expected(call),
            principal=call.principal,
            claim=claim(call, body),
            answer=lambda outcomes: _answer(name, outcomes, form, readable),
        )
    )
    if written.answer is None:
        raise AssertionError("a write that requests a response has one")
    return written.answer


async def _readable(call: Call, name: str) -> Callable[[bytes], bool]:
    """Return whether the caller may see a document that it has just written."""
    access = access_of(await facts.find(call.tenant.id, name), call.principal)
    if access is None:
        return lambda _: True
    rule = access.filters.get("read")
    if rule is None:
        return _unreadable
    moment = _now_ms()
    return lambda body: rule.matches(body, moment)


def _unreadable(_: bytes) -> bool:
    return False


def _answer(
    name: str,
    outcomes: Outcomes,
    form: bool,  # noqa: FBT001
    readable: Callable[[bytes], bool],
) -> CallResponse:
    change = outcomes.change(0)
    body = change.body
    if body is None:
        return CallResponse(204)
    headers = {"ETag": etag(change.version)}
    if change.created:
        headers["Location"] = f"/v1/collections/{name}/documents/{format_id(change.id)}"
    shown = change.envelope(canonical=form) if readable(body) else None
    return CallResponse(201 if change.created else 200, shown or b"{}", headers)


def shown(document: StoredDocument, *, canonical_form: bool) -> bytes:
    """Return the envelope of a document that was read."""
    return envelope(
        document.version,
        document.created_ms,
        document.updated_ms,
        document.body,
        canonical=canonical_form,
    )


def _now_ms() -> int:
    return int(time.time() * 1000)
