"""Values of results as JSON, in relaxed Extended JSON where JSON has no such value.

Columns of tables look as in the answers of other queries (`analytics.query.literals`).
"""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Callable, Sequence
from decimal import Decimal

import pyarrow as pa

from analytics.query.literals import plain
from foundation.errors import FieldProblem, InvalidSql
from foundation.json_types import JsonObject, JsonValue

Converter = Callable[[object], JsonValue]

#: Types whose values Arrow does not keep.
_WITHOUT_FORM = re.compile(
    r"\b(BIT|BIGNUM|UNION|TIME WITH TIME ZONE|TIMESTAMP_NS|VARIANT|GEOMETRY)\b"
)
_WHOLE = ("HUGEINT", "UHUGEINT")
_SAFE, _INT64 = 2**53, 2**63


def check_types(names: Sequence[str], kinds: Sequence[str]) -> None:
    """Raise `InvalidSql` for a column whose values no format can show."""
    for name, kind in zip(names, kinds, strict=True):
        if found := _WITHOUT_FORM.search(kind):
            detail = f"The column {name[:63]!r} has the type {found[0]}: cast it to VARCHAR."
            raise InvalidSql(detail, errors=[FieldProblem("/sql", "type", detail)])


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names for all columns: those of repeated ones end with a number."""
    found: list[str] = []
    used = set(names)
    for name in names:
        candidate, number = name, 0
        while candidate in found or (number and candidate in used):
            number += 1
            candidate = f"{name}_{number}"
        found.append(candidate)
    return found


def converter(arrow: pa.DataType, duckdb_type: str) -> Converter | None:
    """Return a converter of a column's values to JSON; None if they are JSON as they are."""
    if pa.types.is_decimal(arrow):
        return _whole if duckdb_type in _WHOLE else _decimal
    if arrow in (pa.bool_(), pa.string(), pa.int8(), pa.int16(), pa.int32(), pa.uint8()):
        return None
    return _converter(arrow)


def _converter(kind: pa.DataType) -> Converter:
    if pa.types.is_decimal(kind):
        return _whole if kind == pa.decimal128(38, 0) else _decimal
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return _local_time
    if pa.types.is_time(kind):
        return _time
    if pa.types.is_binary(kind):
        return _binary
    if pa.types.is_interval(kind):
        return _interval
    if pa.types.is_map(kind):
        return _map(_converter(kind.key_type), _converter(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return _list(_converter(kind.value_type))
    if pa.types.is_struct(kind):
        return _struct({field.name: _converter(field.type) for field in kind})
    return plain(kind)


def _whole(value: object) -> JsonValue:
    if not isinstance(value, Decimal):
        return None
    number = int(value)
    if abs(number) <= _SAFE:
        return number
    if -_INT64 <= number < _INT64:
        return {"$numberLong": str(number)}
    return {"$numberDecimal": str(number)}


def _decimal(value: object) -> JsonValue:
    return None if value is None else {"$numberDecimal": f"{value:f}"}


def _local_time(value: object) -> JsonValue:
    if not isinstance(value, datetime.datetime):
        return None
    return value.isoformat(timespec="microseconds")


def _time(value: object) -> JsonValue:
    return value.isoformat() if isinstance(value, datetime.time) else None


def _binary(value: object) -> JsonValue:
    if not isinstance(value, bytes):
        return None
    return {"$binary": {"base64": base64.b64encode(value).decode(), "subType": "00"}}


def _interval(value: object) -> JsonValue:
    """Return an ISO 8601 duration."""
    if not isinstance(value, pa.MonthDayNano):
        return None
    seconds = Decimal(value.nanoseconds) / 1_000_000_000
    return f"P{value.months}M{value.days}DT{seconds.normalize():f}S"


def _list(item: Converter) -> Converter:
    def convert(value: object) -> JsonValue:
        return [item(one) for one in value] if isinstance(value, list) else None

    return convert


def _struct(members: dict[str, Converter]) -> Converter:
    def convert(value: object) -> JsonValue:
        if not isinstance(value, dict):
            return None
        converted: JsonObject = {name: member(value[name]) for name, member in members.items()}
        return converted

    return convert


def _map(key: Converter, item: Converter) -> Converter:
    """Return a converter to pairs, since keys need not be texts."""

    def convert(value: object) -> JsonValue:
        if not isinstance(value, list):
            return None
        return [[key(one), item(other)] for one, other in value]

    return convert
