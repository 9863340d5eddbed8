"""Writes as API calls."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from rillbase import ejson, ids
from rillbase.http import ApiRequest
from rillbase.local.pending import Kind, WriteOperation
from rillbase.shapes import Document
from rillbase.values import ObjectId
from rillbase.writes.job import WriteJob


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of a write."""

    upsert: bool = False
    array_filters: Sequence[Mapping[str, object]] | None = None
    #: Change the document only if it has this version.
    if_version: int | None = None


NO_OPTIONS = WriteOptions()


@dataclass(frozen=True, slots=True)
class WriteStep:
    """One operation with its options, as bulk calls and transactions send it."""

    operation: WriteOperation
    options: WriteOptions = NO_OPTIONS


def step(
    kind: Kind,
    collection: str,
    identity: object,
    body: Mapping[str, object] | None = None,
    options: WriteOptions = NO_OPTIONS,
) -> WriteStep:
    """Return an operation with values as the server returns them."""
    operation = WriteOperation(
        kind,
        collection,
        ejson.normal(identity),
        ejson.normal(body or {}),
        is_foreseeable=options.array_filters is None,
    )
    return WriteStep(operation, options)


def insertion(collection: str, document: Mapping[str, object]) -> WriteStep:
    """The client generates the ids of new documents, so that a retried insert hits the first
    one.
    """
    named = document if "_id" in document else {"_id": ObjectId(), **document}
    return step("insert", collection, named["_id"], named)


def new_key() -> str:
    """Return a new idempotency key."""
    return secrets.token_hex(16)


def address(collection: str, rest: str) -> str:
    return f"/v1/collections/{quote(collection, safe='')}/{rest}"


def single(write_step: WriteStep) -> WriteJob:
    """Return a write of one document."""
    operation, options = write_step.operation, write_step.options
    path = address(operation.collection, f"documents/{ids.segment(operation.id)}")
    common: dict[str, Any] = {
        "idempotency_key": new_key(),
        "if_match": None if options.if_version is None else f'"v{options.if_version}"',
    }
    match operation.kind:
        case "insert":
            documents = address(operation.collection, "documents")
            request = ApiRequest("POST", documents, ejson.dumps(operation.body), **common)
        case "replace":
            request = ApiRequest("PUT", path, ejson.dumps(operation.body), **common)
        case "delete":
            request = ApiRequest("DELETE", path, **common)
        case _:
            if operation.kind == "merge":
                common["content_type"] = "application/merge-patch+json"
            target = path + _search(options)
            request = ApiRequest("PATCH", target, ejson.dumps(operation.body), **common)
    return WriteJob(request, [operation])


def _search(options: WriteOptions) -> str:
    search = {"upsert": "true"} if options.upsert else {}
    if options.array_filters is not None:
        search["array_filters"] = ejson.dumps(list(options.array_filters))
    return f"?{urlencode(search)}" if search else ""


def bulk(collection: str, steps: Sequence[WriteStep], *, ordered: bool) -> WriteJob:
    """Return several writes of one collection as one call."""
    operations = [_body(one) for one in steps]
    path = address(collection, "documents:bulk")
    return _together(path, {"operations": operations, "ordered": ordered}, steps)


def transaction(steps: Sequence[WriteStep]) -> WriteJob:
    """Return writes of several collections; all of them succeed or none."""
    operations = [{"collection": one.operation.collection, **_body(one)} for one in steps]
    return _together("/v1/transactions", {"operations": operations}, steps)


def _together(path: str, body: Document, steps: Sequence[WriteStep]) -> WriteJob:
    request = ApiRequest("POST", path, ejson.dumps(body), idempotency_key=new_key())
    return WriteJob(request, [one.operation for one in steps])


def _body(write_step: WriteStep) -> Document:
    operation, options = write_step.operation, write_step.options
    match operation.kind:
        case "insert":
            body: Document = {"insert": operation.body}
        case "replace":
            body = {"replace": {"id": operation.id, "document": operation.body}}
        case "delete":
            body = {"delete": {"id": operation.id}}
        case _:
            body = {"update": _change(operation, options)}
    condition = {} if options.if_version is None else {"if_version": options.if_version}
    return {**body, **condition}


def _change(operation: WriteOperation, options: WriteOptions) -> Document:
    change = {"id": operation.id, "update": operation.body, "upsert": options.upsert}
    if options.array_filters is not None:
        change["array_filters"] = list(options.array_filters)
    return change
