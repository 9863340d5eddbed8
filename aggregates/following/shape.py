"""What a document adds to a view: the fields that the view needs, if its filter lets it in."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, cast

from foundation.json_types import JsonObject
from rillbase_native import Filter, Value


@dataclass(frozen=True, slots=True)
class Shape:
    """A view's filter, and which members of documents the storage node is told."""

    filter: Filter
    members: tuple[str, ...]

    @classmethod
    def of(cls, definition: JsonObject, filter_text: str) -> Self:
        """Read a definition, and a filter in Extended JSON."""
        return cls(
            Filter.parse(Value.parse(filter_text.encode()) if filter_text else None),
            tuple(dict.fromkeys(path.partition(".")[0] for path in _paths(definition))),
        )

    def change(self, key: bytes, version: int, body: bytes | None) -> bytes:
        """Return what the node is told of a version of a document; no body: it is deleted."""
        row = None if body is None else self.row(body)
        return b'{"key":"%b","version":%d,"row":%b}' % (
            urlsafe_b64encode(key),
            version,
            b"null" if row is None else row,
        )

    def row(self, body: bytes) -> bytes | None:
        """Return the members of a document that count; None: the filter keeps it out."""
        if not self.filter.matches(body, 0):
            return None
        document = Value.from_bson(body)
        parts = [
            json.dumps(name).encode() + b":" + found.ejson()
            for name in self.members
            if (found := document.get(name)) is not None
        ]
        return b"{" + b",".join(parts) + b"}"


def _paths(definition: JsonObject) -> Iterable[str]:
    yield from cast("list[str]", definition["dimensions"])
    time = definition["time"]
    if isinstance(time, dict):
        yield str(time["field"])
    for measure in cast("dict[str, JsonObject]", definition["measures"]).values():
        if "field" in measure:
            yield str(measure["field"])
