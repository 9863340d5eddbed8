"""Extended JSON, in its canonical form, as columns. Runs only in worker processes.

Values of one type become a column of this type: integers and doubles together a double, as long as
no integer is rounded; ObjectIds text; objects structs; arrays lists. Values of other mixtures
become text, as in CSV.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

import pyarrow as pa

from foundation.json_types import JsonValue

_Values = Sequence[JsonValue]

_MAX_EXACT = 2**53
_MAX_PRECISION = 38
_UUID_SUBTYPE, _UUID_BYTES = "04", 16
_TAGS: Mapping[str, str] = {
    "$numberInt": "int32",
    "$numberLong": "int64",
    "$numberDouble": "double",
    "$numberDecimal": "decimal",
    "$date": "date",
    "$binary": "binary",
    "$oid": "objectId",
}
_NUMBERS = frozenset({"int32", "int64", "double", "decimal"})


def value_column(values: _Values) -> pa.Array:
    """Return the values as a column of the type that holds all of them."""
    kinds = {_kind(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values), pa.string())
    if kinds <= _NUMBERS:
        return _numbers(values, kinds)
    if len(kinds) == 1:
        return _COLUMNS.get(kinds.pop(), _texts)(values)
    return _texts(values)


def _kind(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        return "array"
    if isinstance(value, dict):
        name = next(iter(value), "")
        return (
            (_TAGS.get(name, "other") if len(value) == 1 else "other")
            if name[:1] == "$"
            else "object"
        )
    return "other"


def _inner(value: JsonValue) -> JsonValue:
    """Return what a tagged value has: `{"$oid": "…"}` has `…`."""
    return next(iter(value.values())) if isinstance(value, dict) else None


def _numbers(values: _Values, kinds: set[str]) -> pa.Array:
    texts = [None if value is None else str(_inner(value)) for value in values]
    if kinds <= {"int32", "int64"}:
        kind = pa.int32() if kinds == {"int32"} else pa.int64()
        return pa.array([None if text is None else int(text) for text in texts], kind)
    if "decimal" in kinds:
        return _texts(values) if "double" in kinds else _decimals(values, texts)
    integers = [_inner(v) for v in values if v is not None and _kind(v) != "double"]
    if any(abs(int(str(number))) > _MAX_EXACT for number in integers):
        return _texts(values)
    return pa.array([None if text is None else float(text) for text in texts], pa.float64())


def _decimals(values: _Values, texts: Sequence[str | None]) -> pa.Array:
    numbers = [None if text is None else Decimal(text) for text in texts]
    known = [number for number in numbers if number is not None]
    if not all(number.is_finite() for number in known):
        return _texts(values)
    scale = max(0, *(-_exponent(number) for number in known))
    whole = max(len(n.as_tuple().digits) + _exponent(n) for n in known)
    precision = max(1, scale, whole + scale)
    if precision > _MAX_PRECISION:
        return _texts(values)
    return pa.array(numbers, pa.decimal128(precision, scale))


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _booleans(values: _Values) -> pa.Array:
    return pa.array(values, pa.bool_())


def _dates(values: _Values) -> pa.Array:
    moments = [None if value is None else int(str(_inner(_inner(value)))) for value in values]
    return pa.array(moments, pa.timestamp("ms", "UTC"))


def _binaries(values: _Values) -> pa.Array:
    parts = [_inner(value) for value in values]
    contents = [b64decode(str(p["base64"])) if isinstance(p, dict) else None for p in parts]
    subtypes = {str(part["subType"]) for part in parts if isinstance(part, dict)}
    sizes = {len(content) for content in contents if content is not None}
    is_uuid = (subtypes, sizes) == ({_UUID_SUBTYPE}, {_UUID_BYTES})
    return pa.array(contents, pa.uuid() if is_uuid else pa.binary())


def _arrays(values: _Values) -> pa.Array:
    items: list[JsonValue] = []
    offsets: list[int | None] = []
    for value in values:
        offsets.append(len(items) if isinstance(value, list) else None)
        if isinstance(value, list):
            items.extend(value)
    offsets.append(len(items))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), value_column(items))


def _objects(values: _Values) -> pa.Array:
    names: dict[str, None] = {}
    for value in values:
        if isinstance(value, dict):
            names |= dict.fromkeys(value)
    if not names:
        return _texts(values)  # Parquet has no structs without members.
    members = [
        value_column([v.get(name) if isinstance(v, dict) else None for v in values])
        for name in names
    ]
    is_null = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(members, names=list(names), mask=is_null)


def _texts(values: _Values) -> pa.Array:
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    kind = _kind(value)
    if kind in _NUMBERS or kind == "objectId":
        return str(_inner(value))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_COLUMNS: Mapping[str, Callable[[_Values], pa.Array]] = {
    "boolean": _booleans,
    "date": _dates,
    "binary": _binaries,
    "array": _arrays,
    "object": _objects,
}
