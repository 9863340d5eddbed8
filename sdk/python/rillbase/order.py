"""The server's order of values: by kind, then within the kind."""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias

from rillbase.values import MIN, Binary, BoundaryValue, ObjectId, Timestamp

#: The position of a kind, and the sort key within the kind.
Rank: TypeAlias = tuple[int, Any]

NUMBER, LIST = 2, 5
_NAN: Rank = (NUMBER, (0, 0))
#: Kinds whose values Python orders in the same way.
_OPAQUE = {ObjectId: 7, datetime: 9, Timestamp: 10}
_UUID_SUBTYPE = 4


def rank(value: object) -> Rank:
    """Return the sort key of a value. Values that the server considers equal have equal keys."""
    match value:
        case BoundaryValue():
            return (0 if value is MIN else 99, 0)
        case None | bool():
            return (1 if value is None else 8, bool(value))
        case int() | float() | Decimal():
            # NaN sorts first, although it equals nothing.
            return _NAN if value != value else (NUMBER, (1, value))  # noqa: PLR0124
        case str():
            return (3, value)
        case dict():
            return (4, [(rank(v)[0], name, rank(v)) for name, v in value.items()])
        case list():
            return (LIST, [rank(item) for item in value])
        case bytes() | uuid.UUID() | Binary():
            return (6, _bytes_rank(value))
        case ObjectId() | datetime() | Timestamp():
            return (_OPAQUE[type(value)], value)
        case _:
            return (11, str(value))


def is_nan(value: object) -> bool:
    return rank(value) == _NAN


def _bytes_rank(value: bytes | uuid.UUID | Binary) -> tuple[int, int, bytes]:
    match value:
        case uuid.UUID():
            return (16, _UUID_SUBTYPE, value.bytes)
        case Binary():
            return (len(value.data), value.subtype, value.data)
        case _:
            return (len(value), 0, value)
