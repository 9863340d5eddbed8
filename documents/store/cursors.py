"""Cursors of queries: the position after which the next page starts, valid only for this query."""

from __future__ import annotations

from dataclasses import dataclass
from struct import error, pack, unpack_from
from uuid import UUID

from documents.store.scan import Position
from foundation.api.cursors import open_sealed, seal
from foundation.errors import InvalidCursor
from rillbase_native import Filter, Sort

MAX_CHARS = 64 * 1024
_HEAD = "!QIII"
_HEAD_BYTES = 20


@dataclass(frozen=True, slots=True)
class CursorPosition:
    """The last row of the previous page."""

    sort_position: bytes
    entry: bytes
    key: bytes
    #: The number of the index that gave the order; 0: none.
    index: int = 0

    def resume(self, index: int) -> Position | None:
        """Return where to resume reading by an index, or by key (0), if that is possible."""
        if not index:
            return Position(b"", self.key)
        return Position(self.entry, self.key) if index == self.index else None


def binding(tenant_id: UUID, collection_id: UUID, query_filter: Filter, sort: Sort) -> bytes:
    """Return what a cursor is valid for."""
    parts = (tenant_id.bytes, collection_id.bytes, query_filter.hash(), sort.canonical().encode())
    return b"query-2:" + b"".join(parts)


def write(position: CursorPosition, bound: bytes) -> str:
    parts = (position.sort_position, position.entry, position.key)
    head = pack(_HEAD, position.index, *map(len, parts))
    return seal(head + b"".join(parts), bound)


def read(cursor: str, bound: bytes) -> CursorPosition:
    if len(cursor) > MAX_CHARS:
        raise InvalidCursor
    payload = open_sealed(cursor, bound)
    try:
        index, length, entry, _ = unpack_from(_HEAD, payload)
    except error:
        raise InvalidCursor from None
    middle = _HEAD_BYTES + length
    return CursorPosition(
        payload[_HEAD_BYTES:middle],
        payload[middle : middle + entry],
        payload[middle + entry :],
        index,
    )
