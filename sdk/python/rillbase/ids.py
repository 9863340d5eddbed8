"""A document's `_id`: in an address, as a key of dictionaries, and in the order of answers."""

from __future__ import annotations

import re
import uuid
from datetime import datetime
from decimal import Decimal
from urllib.parse import quote

from rillbase import ejson
from rillbase.values import MIN, Binary, Bound, ObjectId, Timestamp

#: Kinds whose values order themselves.
_OPAQUE = {ObjectId: 7, datetime: 9, Timestamp: 10}
_HEX_24 = re.compile(r"[0-9a-fA-F]{24}")


def segment(identity: object) -> str:
    """Return the part of an address that stands for an `_id`."""
    if isinstance(identity, ObjectId):
        return identity.hex
    if isinstance(identity, str) and _speaks_for_itself(identity):
        return quote(identity, safe="")
    return "~" + quote(ejson.dumps(identity), safe="")


def _speaks_for_itself(identity: str) -> bool:
    special = identity in ("", ".", "..") or identity.startswith("~")
    return not special and not _HEX_24.fullmatch(identity)


def key(identity: object) -> str:
    """Return a text that is equal for equal ids."""
    return f"s{identity}" if isinstance(identity, str) else f"e{ejson.dumps(identity)}"


def rank(identity: object) -> tuple[int, object]:
    """Return what ids are ordered by, as the server orders them."""
    match identity:
        case Bound():
            return (0 if identity is MIN else 99, 0)
        case None | bool():
            return (1 if identity is None else 8, bool(identity))
        case int() | float() | Decimal():
            # NaN comes first, and is equal to nothing by itself.
            return (2, (0, 0)) if identity != identity else (2, (1, identity))  # noqa: PLR0124
        case str():
            return (3, identity)
        case dict():
            return (4, [(rank(v)[0], name, rank(v)) for name, v in identity.items()])
        case bytes() | uuid.UUID() | Binary():
            return (6, _bytes_rank(identity))
        case ObjectId() | datetime() | Timestamp():
            return (_OPAQUE[type(identity)], identity)
        case _:
            return (11, str(identity))


def _bytes_rank(identity: bytes | uuid.UUID | Binary) -> tuple[int, int, bytes]:
    match identity:
        case uuid.UUID():
            return (16, ejson.UUID_SUBTYPE, identity.bytes)
        case Binary():
            return (len(identity.data), identity.subtype, identity.data)
        case _:
            return (len(identity), 0, identity)
