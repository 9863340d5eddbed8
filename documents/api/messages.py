"""Writes and queries over a connection: their REST calls' handlers, called without HTTP.

`key` is the document's `_id`, since `id` names the message.
"""

from __future__ import annotations

from urllib.parse import unquote

from connections.message_calls import MessageCall, MessageCalls, object_of, with_idempotency_key
from connections.messages import Message, wrong
from data_plane.internal_call import Handler, InternalCall
from data_plane.request_reader import refusing
from documents.api import documents, queries
from foundation.api.preconditions import etag
from foundation.environment import environment
from rillbase_native import Value, format_id

_WRITE = ("collection", "idempotency_key")
_CHANGE = (*_WRITE, "key", "if_version")
#: Canonical Extended JSON takes at most so many times the bytes of the shortest text.
CANONICAL_FACTOR = 16


def _insert(message: Message) -> InternalCall:
    message.allow((*_WRITE, "document"))
    return _write(message, documents.insert, "POST", document=_member(message, "document"))


def _replace(message: Message) -> InternalCall:
    message.allow((*_CHANGE, "document"))
    document = _member(message, "document")
    return _write(message, documents.replace, "PUT", document=document, by_key=True)


def _update(message: Message) -> InternalCall:
    message.allow((*_CHANGE, "update", "patch", "array_filters", "upsert"))
    merges = message.value.get("patch") is not None
    call = _write(
        message,
        documents.update,
        "PATCH",
        document=_member(message, "patch" if merges else "update"),
        by_key=True,
    )
    if merges:
        call.headers["Content-Type"] = documents.MERGE_PATCH
    filters, upsert = message.value.get("array_filters"), message.value.get("upsert")
    if filters is not None:
        call.query["array_filters"] = filters.ejson(canonical=True).decode()
    if upsert is not None:
        call.query["upsert"] = upsert.ejson().decode()
    return call


def _delete(message: Message) -> InternalCall:
    message.allow(_CHANGE)
    return _write(message, documents.delete, "DELETE", by_key=True)


def _query(message: Message) -> InternalCall:
    message.allow(("collection", *queries.MEMBERS))
    collection = message.required_text("collection")
    body = object_of(message.value, queries.MEMBERS)
    return InternalCall(
        queries.query,
        "POST",
        f"/v1/collections/{collection}/query",
        {"collection": collection},
        body,
    )


def _write(
    message: Message,
    handler: Handler,
    method: str,
    *,
    document: Value | None = None,
    by_key: bool = False,
) -> InternalCall:
    collection = message.required_text("collection")
    path, parameters = f"/v1/collections/{collection}/documents", {"collection": collection}
    if by_key:
        segment = _segment(message)
        path, parameters = f"{path}/{segment}", {**parameters, "id": unquote(segment)}
    call = InternalCall(handler, method, path, parameters)
    if document is not None and _exceeds_bounds_of_bodies(message):
        call.body = document.ejson(canonical=True)
    else:
        call.document = document
    with_idempotency_key(message, call)
    version = message.value.get("if_version")
    if version is not None:
        call.headers["If-Match"] = etag(_integer(version))
    return call


def _segment(message: Message) -> str:
    key = message.value.get("key")
    if key is None:
        raise wrong("key", "This field is required.", code="required")
    with refusing("/key"):
        return format_id(key)


def _exceeds_bounds_of_bodies(message: Message) -> bool:
    """Return whether a document of the message might be too large for the body of a call."""
    return CANONICAL_FACTOR * message.size_bytes > environment().rillbase_body_max_bytes


def _member(message: Message, name: str) -> Value:
    member = message.value.get(name)
    if member is None:
        raise wrong(name, "This field is required.", code="required")
    if member.kind != "object":
        raise wrong(name, "Expected an object.")
    return member


def _integer(value: Value) -> int:
    try:
        return value.integer()
    except TypeError:
        raise wrong("if_version", "Expected an integer.") from None


def _document_key(message: Message) -> bytes | None:
    """Changes of one document run one after the other."""
    key = message.value.get("key")
    if key is None:
        return None
    return (message.text("collection") or "").encode() + b"\0" + key.ejson(canonical=True)


CALLS: MessageCalls = {
    "insert": MessageCall(_insert),
    "replace": MessageCall(_replace, _document_key),
    "update": MessageCall(_update, _document_key),
    "delete": MessageCall(_delete, _document_key),
    "query": MessageCall(_query),
}
