"""Converts values between JSON and columns."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa

from analytics.rows.compound import encode
from foundation.json_types import JsonObject, JsonValue

Literal: TypeAlias = bool | int | float | str | datetime.datetime | datetime.date | None
#: Larger integers are not exact in many JSON parsers.
_SAFE = 2**53
_INT64 = 2**63


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


class InvalidLiteral(ValueError):
    """A value that is not valid for a column."""


def literal(value: JsonValue, kind: pa.DataType) -> Literal:
    """Convert a JSON value for comparison with a column, or raise `InvalidLiteral`."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return _key(value, kind)
    if isinstance(value, dict):
        value = _read_extended(value)
    if pa.types.is_boolean(kind):
        if not isinstance(value, bool):
            raise InvalidLiteral("the column has type bool")
        return value
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _number(value, kind)
    if pa.types.is_timestamp(kind):
        return moment(_text(value, kind))
    if pa.types.is_date(kind):
        return _date(_text(value, kind))
    return _text(value, kind)


def _key(value: JsonValue, kind: pa.StructType) -> str:
    """Return the text of a composite key."""
    names = [field.name for field in kind]
    if not isinstance(value, dict) or set(value) != set(names):
        raise InvalidLiteral(f"a key must be an object with {', '.join(names)}")
    parts = [literal(value[field.name], field.type) for field in kind]
    present = [part for part in parts if isinstance(part, int | str)]
    if len(present) < len(parts):
        raise InvalidLiteral("every part of a key must have a value")
    return encode(present)


def moment(text: str) -> datetime.datetime:
    """Parse an RFC 3339 time, or raise `InvalidLiteral`."""
    try:
        parsed = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InvalidLiteral("a time has the form 2026-11-21T16:30:00Z") from None
    if parsed.tzinfo is None:
        raise InvalidLiteral("a time must include its time zone, as in 2026-11-21T16:30:00Z")
    try:
        return parsed.astimezone(datetime.UTC)
    except OverflowError:
        raise InvalidLiteral("a time must be in the years 1 to 9999 of UTC") from None


def microseconds(time: datetime.datetime) -> int:
    """Return the microseconds since 1970."""
    return (time - _EPOCH) // _MICROSECOND


def days(date: datetime.date) -> int:
    """Return the days since 1970."""
    return (date - _EPOCH.date()).days


def plain(kind: pa.DataType) -> Callable[[object], JsonValue]:
    """Return a converter of a column's values to JSON, or relaxed Extended JSON if needed."""
    if pa.types.is_timestamp(kind):
        return lambda v: None if v is None else _moment_text(v)
    if pa.types.is_date(kind):
        return lambda v: None if v is None else str(v)
    if pa.types.is_integer(kind):
        return _integer_json
    if pa.types.is_floating(kind):
        return _double_json
    if pa.types.is_struct(kind):
        return _parts_json(kind)
    return lambda v: v  # type: ignore[return-value]


def _parts_json(kind: pa.StructType) -> Callable[[object], JsonValue]:
    parts = {field.name: plain(field.type) for field in kind}

    def convert(value: object) -> JsonValue:
        if not isinstance(value, dict):
            return None
        members: JsonObject = {name: converter(value[name]) for name, converter in parts.items()}
        return members

    return convert


def _moment_text(value: object) -> str:
    if not isinstance(value, datetime.datetime):
        raise TypeError(type(value).__name__)
    text = value.astimezone(datetime.UTC).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


def _integer_json(value: object) -> JsonValue:
    if isinstance(value, int) and abs(value) > _SAFE:
        return {"$numberLong": str(value)}
    return value  # type: ignore[return-value]


def _double_json(value: object) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return {"$numberDouble": name}
    return value  # type: ignore[return-value]


_EXTENDED: Mapping[str, Callable[[str], JsonValue]] = {
    "$numberLong": int,
    "$numberInt": int,
    "$numberDouble": float,
    "$date": str,
}


def _read_extended(value: dict[str, JsonValue]) -> JsonValue:
    name = next(iter(value), "")
    inner = value.get(name)
    if len(value) != 1 or name not in _EXTENDED or not isinstance(inner, str):
        raise InvalidLiteral("columns do not contain objects")
    try:
        return _EXTENDED[name](inner)
    except ValueError:
        raise InvalidLiteral(f"expected a value of type {name}") from None


def _text(value: JsonValue, kind: pa.DataType) -> str:
    if not isinstance(value, str):
        raise InvalidLiteral(f"the column has type {kind}")
    return value


def _number(value: JsonValue, kind: pa.DataType) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidLiteral(f"the column has type {kind}")
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise InvalidLiteral("the number has more than 64 bits")
    return value


def _date(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise InvalidLiteral("a day has the form 2026-11-21") from None
