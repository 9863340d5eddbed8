"""What a document contributes to a view: the fields that the view needs, if its filter matches."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self, cast

from foundation.json_types import JsonObject
from rillbase_native import Filter, QueryError, Value

#: How many of the last omitted documents are remembered, so that each version counts once.
_REMEMBERED = 10_000


@dataclass(slots=True)
class SkippedDocuments:
    """Document versions that a view lacks because they could not be evaluated."""

    count: int = 0
    detail: str = ""
    _versions: dict[bytes, int] = field(default_factory=dict)

    def add(self, key: bytes, version: int, detail: str) -> None:
        """Count a version once, although the streams and the backfill may both bring it."""
        if self._versions.pop(key, None) != version:
            self.count += 1
            self.detail = self.detail or detail
        self._versions[key] = version
        if len(self._versions) > _REMEMBERED:
            del self._versions[next(iter(self._versions))]


@dataclass(frozen=True, slots=True)
class ViewProjection:
    """A view's filter, and which members of documents are sent to the storage node."""

    filter: Filter
    members: tuple[str, ...]
    left_out: SkippedDocuments

    @classmethod
    def of(
        cls, definition: JsonObject, filter_text: str, left_out: SkippedDocuments | None = None
    ) -> Self:
        """Read a definition, and a filter in Extended JSON."""
        return cls(
            Filter.parse(Value.parse(filter_text.encode()) if filter_text else None),
            tuple(dict.fromkeys(path.partition(".")[0] for path in _paths(definition))),
            left_out or SkippedDocuments(),
        )

    def change(self, key: bytes, version: int, body: bytes | None) -> bytes:
        """Return a document version in the storage node's format; without a body: deleted.

        A document that cannot be evaluated is omitted, like one that the filter excludes.
        """
        row = None
        if body is not None:
            try:
                row = self.row(body)
            except QueryError as error:
                self.left_out.add(key, version, error.detail)
        return b'{"key":"%b","version":%d,"row":%b}' % (
            urlsafe_b64encode(key),
            version,
            b"null" if row is None else row,
        )

    def row(self, body: bytes) -> bytes | None:
        """Return the relevant members of a document; None: the filter excludes it.

        Raise `QueryError` if the filter cannot be evaluated.
        """
        if not self.filter.evaluate(body, 0):
            return None
        document = Value.from_bson(body)
        parts = [
            json.dumps(name).encode() + b":" + value.ejson()
            for name in self.members
            if (value := document.get(name)) is not None
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
