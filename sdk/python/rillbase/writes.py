"""Writes as the calls of the API."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import quote, urlencode

from rillbase import ejson, ids
from rillbase.http import Request
from rillbase.shapes import Document
from rillbase.values import ObjectId


def new_key() -> str:
    """Return a new idempotency key."""
    return secrets.token_hex(16)


def address(collection: str, rest: str) -> str:
    return f"/v1/collections/{quote(collection, safe='')}/{rest}"


def one(  # noqa: PLR0913 -- the options of a write, all by name
    method: str,
    collection: str,
    identity: object,
    body: object = None,
    *,
    merge: bool = False,
    upsert: bool = False,
    array_filters: Sequence[Mapping[str, object]] | None = None,
    if_version: int | None = None,
) -> Request:
    """Return a write of one document that is named by its address."""
    search = {"upsert": "true"} if upsert else {}
    if array_filters is not None:
        search["array_filters"] = ejson.dumps(list(array_filters))
    path = address(collection, f"documents/{ids.segment(identity)}")
    return Request(
        method,
        f"{path}?{urlencode(search)}" if search else path,
        None if body is None else ejson.dumps(body),
        content_type="application/merge-patch+json" if merge else "application/json",
        idempotency_key=new_key(),
        if_match=None if if_version is None else f'"v{if_version}"',
    )


def insert(collection: str, document: Mapping[str, object]) -> Request:
    body = ejson.dumps(with_id(document))
    return Request("POST", address(collection, "documents"), body, idempotency_key=new_key())


def with_id(document: Mapping[str, object]) -> Document:
    """The client names new documents, so that a repeated insert meets the first one."""
    return {"_id": ObjectId(), **document}


@dataclass(slots=True)
class Steps:
    """Operations that are gathered before they are sent together."""

    collection: str | None = None
    operations: list[Document] = field(default_factory=list)

    def insert(self, document: Mapping[str, object]) -> Self:
        return self._add({"insert": with_id(document)}, None)

    def replace(
        self, identity: object, document: Mapping[str, object], *, if_version: int | None = None
    ) -> Self:
        return self._add({"replace": {"id": identity, "document": dict(document)}}, if_version)

    def update(
        self,
        identity: object,
        update: Mapping[str, object],
        *,
        upsert: bool = False,
        if_version: int | None = None,
    ) -> Self:
        change = {"id": identity, "update": dict(update), "upsert": upsert}
        return self._add({"update": change}, if_version)

    def delete(self, identity: object, *, if_version: int | None = None) -> Self:
        return self._add({"delete": {"id": identity}}, if_version)

    def _add(self, operation: Document, if_version: int | None) -> Self:
        where = {} if self.collection is None else {"collection": self.collection}
        condition = {} if if_version is None else {"if_version": if_version}
        self.operations.append({**where, **operation, **condition})
        return self


@dataclass(slots=True)
class Transaction:
    """Operations on any collections, of which all are done or none."""

    operations: list[Document] = field(default_factory=list)

    def collection(self, name: str) -> Steps:
        return Steps(name, self.operations)


def together(path: str, operations: Sequence[Document], **members: object) -> Request:
    body = ejson.dumps({"operations": operations, **members})
    return Request("POST", path, body, idempotency_key=new_key())
