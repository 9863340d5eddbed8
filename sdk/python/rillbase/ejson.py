"""Python values as Extended JSON, and back: the server accepts both forms and returns the relaxed
one.
"""

from __future__ import annotations

import base64
import json
import math
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from rillbase.values import MAX, MIN, Binary, BoundaryValue, ObjectId, RegularExpression, Timestamp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UUID_SUBTYPE, UUID_BYTES = 4, 16
#: Many JSON parsers do not represent larger integers exactly.
SAFE = 2**53 - 1


def dumps(value: object) -> str:
    """Return a value's text."""
    return json.dumps(encode(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def loads(text: str | bytes) -> Any:
    """Return the value of a text."""
    return decode(json.loads(text))


def normal(value: object) -> Any:
    """Return a copy as the server returns it: lists for tuples, milliseconds for microseconds."""
    return decode(encode(value))


def encode(value: object) -> Any:
    """Return a value that consists only of JSON's types."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= SAFE else {"$numberLong": str(value)}
        case float():
            return value if math.isfinite(value) else {"$numberDouble": _special(value)}
        case Mapping():
            return {_name(name): encode(member) for name, member in value.items()}
        case list() | tuple():
            return [encode(item) for item in value]
        case _:
            return _typed(value)


def _typed(value: object) -> dict[str, Any]:
    match value:
        case ObjectId():
            return {"$oid": value.hex}
        case datetime():
            return _date(value)
        case Decimal():
            return {"$numberDecimal": str(value)}
        case bytes() | bytearray() | uuid.UUID() | Binary():
            return _bytes(value)
        case Timestamp():
            return {"$timestamp": {"t": value.seconds, "i": value.ordinal}}
        case RegularExpression():
            return _regular_expression(value.pattern, value.options)
        case re.Pattern():
            return _regular_expression(value.pattern, _options(value))
        case BoundaryValue():
            return {value.name: 1}
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be stored")


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError("names of fields must be strings")
    return name


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _date(value: datetime) -> dict[str, Any]:
    if value.tzinfo is None:
        raise ValueError("a datetime must have a time zone to be stored")
    ms = (value - EPOCH) // timedelta(milliseconds=1)
    return {"$date": {"$numberLong": str(ms)}}


def _bytes(value: bytes | bytearray | uuid.UUID | Binary) -> dict[str, Any]:
    if isinstance(value, uuid.UUID):
        return _binary(value.bytes, UUID_SUBTYPE)
    if isinstance(value, Binary):
        return _binary(value.data, value.subtype)
    return _binary(bytes(value), 0)


def _binary(data: bytes, subtype: int) -> dict[str, Any]:
    return {"$binary": {"base64": base64.b64encode(data).decode(), "subType": f"{subtype:02x}"}}


def _regular_expression(pattern: str, options: str) -> dict[str, Any]:
    return {"$regularExpression": {"pattern": pattern, "options": options}}


def _options(pattern: re.Pattern[str]) -> str:
    flags = (("i", re.IGNORECASE), ("m", re.MULTILINE), ("s", re.DOTALL), ("x", re.VERBOSE))
    return "".join(letter for letter, flag in flags if pattern.flags & flag)


def decode(value: Any) -> Any:
    """Return a value with Python's types instead of Extended JSON's objects."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, argument),) = value.items()
        reader = READERS.get(name)
        if reader is not None:
            return reader(argument)
    return {name: decode(member) for name, member in value.items()}


def _read_date(argument: Any) -> datetime:
    if isinstance(argument, str):
        return datetime.fromisoformat(argument)
    return EPOCH + timedelta(milliseconds=int(argument["$numberLong"]))


def _read_binary(argument: Any) -> bytes | uuid.UUID | Binary:
    data, subtype = base64.b64decode(argument["base64"]), int(argument["subType"], 16)
    if subtype == UUID_SUBTYPE and len(data) == UUID_BYTES:
        return uuid.UUID(bytes=data)
    return data if subtype == 0 else Binary(data, subtype)


READERS: Mapping[str, Callable[[Any], object]] = {
    "$oid": ObjectId,
    "$numberInt": int,
    "$numberLong": int,
    "$numberDouble": float,
    "$numberDecimal": Decimal,
    "$symbol": str,
    "$date": _read_date,
    "$binary": _read_binary,
    "$timestamp": lambda argument: Timestamp(int(argument["t"]), int(argument["i"])),
    "$regularExpression": lambda argument: RegularExpression(
        argument["pattern"], argument.get("options", "")
    ),
    "$minKey": lambda _: MIN,
    "$maxKey": lambda _: MAX,
}
