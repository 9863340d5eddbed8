"""Writes and queries over a connection: the REST calls' handlers, called without HTTP.

A message stands for the REST call of the same name, with the same limits, scopes, rules and
idempotency keys. Its members are those of the REST body; `key` is the document's `_id`, since `id`
names the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from urllib.parse import unquote

from documents.api import documents, queries
from foundation.api.idempotency import HEADER as IDEMPOTENCY_HEADER
from foundation.api.preconditions import etag
from realtime.socket.messages import Message, wrong
from rillbase_native import Value, format_id
from storage_engine.topics import publish
from storage_engine.topics.api.calls import publish_one
from tenants.asked import Asked, Handler
from tenants.reading import (
    refusing,
)


def order_of(message: Message) -> bytes | None:
    """Return what writes are done one after the other for: the document that one changes."""
    key = message.value.get("key")
    if message.type not in ("replace", "update", "delete") or key is None:
        return None
    return (message.text("collection") or "").encode() + b"\0" + key.ejson(canonical=True)


def asked(message: Message) -> Asked:
    """Return the REST call that a message stands for, or raise `InvalidBody`."""
    return READERS[message.type](message)


def _insert(message: Message) -> Asked:
    message.allow((*_WRITE, "document"))
    return _write(message, documents.insert, "POST", body=_member(message, "document"))


def _replace(message: Message) -> Asked:
    message.allow((*_CHANGE, "document"))
    return _write(message, documents.replace, "PUT", body=_member(message, "document"), by_key=True)


def _update(message: Message) -> Asked:
    message.allow((*_CHANGE, "update", "patch", "array_filters", "upsert"))
    merges = message.value.get("patch") is not None
    found = _write(
        message,
        documents.update,
        "PATCH",
        body=_member(message, "patch" if merges else "update"),
        by_key=True,
    )
    if merges:
        found.headers["Content-Type"] = documents.MERGE_PATCH
    filters, upsert = message.value.get("array_filters"), message.value.get("upsert")
    if filters is not None:
        found.query["array_filters"] = filters.ejson(canonical=True).decode()
    if upsert is not None:
        found.query["upsert"] = upsert.ejson().decode()
    return found


def _delete(message: Message) -> Asked:
    message.allow(_CHANGE)
    return _write(message, documents.delete, "DELETE", by_key=True)


def _query(message: Message) -> Asked:
    message.allow(("collection", *queries.MEMBERS))
    collection = message.required_text("collection")
    body = _object(message.value, queries.MEMBERS)
    return Asked(
        queries.query,
        "POST",
        f"/v1/collections/{collection}/query",
        {"collection": collection},
        body,
    )


def _publish(message: Message) -> Asked:
    message.allow(("topic", "topic_id", "idempotency_key", *_PUBLICATION))
    topic = message.required_text("topic")
    body = _object(message.value, _PUBLICATION)
    place = message.value.get("topic_id")
    if place is not None:
        more = b"," if body != b"{}" else b""
        body = b'{"id":' + place.ejson(canonical=True) + more + body[1:]
    found = Asked(publish_one, "POST", f"/v1/topics/{topic}/publications", {"topic": topic}, body)
    held = message.text("idempotency_key")
    if held is not None:
        found.headers[IDEMPOTENCY_HEADER] = held
    return found


READERS: Mapping[str, Callable[[Message], Asked]] = MappingProxyType(
    {
        "insert": _insert,
        "replace": _replace,
        "update": _update,
        "delete": _delete,
        "query": _query,
        "publish": _publish,
    }
)

_WRITE = ("collection", "idempotency_key")
#: Of a publication; its place is `topic_id`, since `id` names the message.
_PUBLICATION = tuple(name for name in publish.MEMBERS if name != "id")
_CHANGE = (*_WRITE, "key", "if_version")


def _write(
    message: Message, handler: Handler, method: str, *, body: bytes = b"", by_key: bool = False
) -> Asked:
    collection = message.required_text("collection")
    path, parameters = f"/v1/collections/{collection}/documents", {"collection": collection}
    if by_key:
        segment = _segment(message)
        path, parameters = f"{path}/{segment}", {**parameters, "id": unquote(segment)}
    found = Asked(handler, method, path, parameters, body)
    held = message.text("idempotency_key")
    if held is not None:
        found.headers[IDEMPOTENCY_HEADER] = held
    version = message.value.get("if_version")
    if version is not None:
        found.headers["If-Match"] = etag(_integer(version))
    return found


def _segment(message: Message) -> str:
    key = message.value.get("key")
    if key is None:
        raise wrong("key", "This field is required.", code="required")
    with refusing("/key"):
        return format_id(key)


def _member(message: Message, name: str) -> bytes:
    found = message.value.get(name)
    if found is None:
        raise wrong(name, "This field is required.", code="required")
    if found.kind != "object":
        raise wrong(name, "An object is expected.")
    return found.ejson(canonical=True)


def _integer(value: Value) -> int:
    try:
        return value.integer()
    except TypeError:
        raise wrong("if_version", "A whole number is expected.") from None


def _object(value: Value, members: Sequence[str]) -> bytes:
    parts = []
    for name in members:
        found = value.get(name)
        if found is not None:
            parts.append(b'"%b":%b' % (name.encode(), found.ejson(canonical=True)))
    return b"{" + b",".join(parts) + b"}"
