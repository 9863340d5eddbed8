"""One-dimensional arrays as PostgreSQL's binary parameters."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, pack

from foundation.postgres.session import Oid

_LENGTH = Struct("!i")
_NULL = pack("!i", -1)


def array(element: int, items: Sequence[bytes | None]) -> bytes:
    """Pack items that are already in binary form. `element` is their type."""
    if not items:
        return pack("!iii", 0, 0, element)
    parts = [pack("!iiiii", 1, int(None in items), element, len(items), 1)]
    length = _LENGTH.pack
    for item in items:
        if item is None:
            parts.append(_NULL)
        else:
            parts.append(length(len(item)))
            parts.append(item)
    return b"".join(parts)


def byteas(items: Sequence[bytes | None]) -> bytes:
    return array(Oid.BYTEA, items)


def int8s(items: Sequence[int]) -> bytes:
    return _fixed_width(Oid.INT8, "q", 8, items)


def xid8s(items: Sequence[int]) -> bytes:
    """Pack transaction ids."""
    return _fixed_width(Oid.XID8, "Q", 8, items)


def int4s(items: Sequence[int]) -> bytes:
    return _fixed_width(Oid.INT4, "i", 4, items)


def _fixed_width(element: int, form: str, width: int, items: Sequence[int]) -> bytes:
    if not items:
        return pack("!iii", 0, 0, element)
    flat = [number for item in items for number in (width, int(item))]
    head = pack("!iiiii", 1, 0, element, len(items), 1)
    return head + pack("!" + f"i{form}" * len(items), *flat)
