"""Parts that calls have in common: names, ids, preconditions, idempotency keys."""

from __future__ import annotations

import re
from typing import NamedTuple

from data_plane.calls import Call
from data_plane.request_reader import read_body, refusing
from documents.store.claims import WriteClaim
from foundation.api.idempotency import HEADER, check_form, digest
from foundation.api.preconditions import versions
from foundation.errors import InvalidParameter, NotFound
from foundation.names import NAME_PATTERN
from rillbase_native import Expected, Value, id_key, parse_id

READ, WRITE = "documents:read", "documents:write"

_NAME = re.compile(rf"{NAME_PATTERN}\Z")


def collection_name(call: Call, scope: str) -> str:
    """Return the collection that the path names, if the caller has the scope."""
    return usable(call, call.parameters["collection"], scope)


def usable(call: Call, name: str, scope: str) -> str:
    """Return the name of a collection, or raise if it is invalid or the caller lacks the scope."""
    if not _NAME.match(name):
        raise NotFound(f"The collection {name[:100]!r} does not exist.")
    call.require_collection_scope(scope, name)
    return name


def path_id(call: Call) -> tuple[Value, bytes]:
    """Return the `_id` that the path names, and its key."""
    with refusing():
        identity = parse_id(call.parameters["id"])
        return identity, id_key(identity)


def expected(call: Call) -> Expected | None:
    """Return the preconditions of `If-Match` and `If-None-Match`."""
    match, none_match = (call.head.headers.get(h) for h in ("If-Match", "If-None-Match"))
    if none_match is not None:
        if none_match.strip() != "*":
            raise InvalidParameter("Calls that change documents accept only `*` in If-None-Match.")
        return Expected(absent=True)
    if match is None:
        return None
    if match.strip() == "*":
        return Expected(present=True)
    return Expected(sorted(versions(match, "If-Match")))


class DocumentBody(NamedTuple):
    """The body of a call: a document, or a change to one."""

    value: Value
    #: Its text, unless it came as a part of something that has been parsed.
    received: bytes | None = None

    def text(self) -> bytes:
        return self.value.ejson(canonical=True) if self.received is None else self.received


async def read_document(call: Call, *media_types: str) -> DocumentBody:
    """Return the body of a call that writes one document."""
    if call.document is not None:
        return DocumentBody(call.document)
    text = await read_body(call, *media_types)
    with refusing():
        return DocumentBody(Value.parse_document(text), text)


def claim(call: Call, body: bytes | DocumentBody) -> WriteClaim | None:
    """Return the idempotency key that the call carries."""
    key = call.head.headers.get(HEADER)
    if key is None:
        return None
    check_form(key)
    tenant, head = call.tenant.id, call.head
    text = body.text() if isinstance(body, DocumentBody) else body
    preconditions = "|".join(
        head.headers.get(name, "") for name in ("If-Match", "If-None-Match", "Content-Type")
    )
    return WriteClaim(
        key_hash=digest(str(tenant), call.principal.actor, head.method, head.path, key),
        request_hash=digest(head.query_string, preconditions, text),
        tenant_id=tenant,
        user_id=call.principal.user_id,
    )
