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
_HEAD = "!III"
_HEAD_BYTES = 12


@dataclass(frozen=True, slots=True)
class CursorPosition:
    """The last row of the previous page."""

    sort_position: bytes
    entry: bytes
    key: bytes

    def resume(self, *, by_index: bool) -> Position | None:
        """Return where to resume reading, if the row was read with the same plan."""
        if not by_index:
            return Position(b"", self.key)
        return Position(self.entry, self.key) if self.entry else None


def binding(tenant_id: UUID, collection_id: UUID, query_filter: Filter, sort: Sort) -> bytes:
    """Return what a cursor is valid for."""
    parts = (tenant_id.bytes, collection_id.bytes, query_filter.hash(), sort.canonical().encode())
    return b"query:" + b"".join(parts)


def write(following: tuple[bytes, bytes, bytes], bound: bytes) -> str:
    lengths = (len(part) for part in following)
    return seal(pack(_HEAD, *lengths) + b"".join(following), bound)


def read(cursor: str, bound: bytes) -> CursorPosition:
    if len(cursor) > MAX_CHARS:
        raise InvalidCursor
    payload = open_sealed(cursor, bound)
    try:
        length, entry, _ = unpack_from(_HEAD, payload)
    except error:
        raise InvalidCursor from None
    middle = _HEAD_BYTES + length
    return CursorPosition(
        payload[_HEAD_BYTES:middle], payload[middle : middle + entry], payload[middle + entry :]
    )
