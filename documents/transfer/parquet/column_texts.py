"""Columns as Extended JSON, column by column. Runs only in worker processes.

A value that no document can hold is a problem of its row, not of the file.

    boolean, text                boolean, string
    integers of up to 32 bits    int32; unsigned ones of 32 bits int64
    64-bit integers              int64; unsigned ones beyond it decimal
    floating point               double
    decimals                     decimal of up to 34 digits
    date, timestamp              date, in milliseconds; a timestamp without a zone is UTC
    time of day                  text such as 08:30:00.5
    binary; UUID                 binary of the subtype 0; 4
    duration                     int64, the number that is stored
    list, struct                 array, object
    map                          object, if its keys are texts; else an array of key and value
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as kinds

MAX_DEPTH = 100
_INT32 = ("int8", "int16", "int32", "uint8", "uint16")
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_DECIMAL_DIGITS = 34
_DAY_MS = 86_400_000
_PER_SECOND: Mapping[str, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class UnsupportedColumn(Exception):
    """No value of this type can be part of a document."""


@dataclass(slots=True)
class Texts:
    """The values of a column: an Extended JSON text each, or None for null."""

    texts: list[str | None]
    #: By row: why a value has no text. Its entry in `texts` is None.
    problems: dict[int, str] = field(default_factory=dict)


_Values: TypeAlias = Sequence[object]


def column_texts(column: pa.Array, depth: int = 0) -> Texts:
    """Return the values of a column, or raise `UnsupportedColumn`."""
    if depth > MAX_DEPTH:
        raise UnsupportedColumn(f"more than {MAX_DEPTH} levels of nesting")
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        subtype = "04" if kind.extension_name == "arrow.uuid" else "00"
        return _stored(column.storage, subtype, depth)
    if kinds.is_dictionary(kind):
        return _dictionary(column, depth)
    if kinds.is_struct(kind):
        return _structs(column, depth)
    if kinds.is_map(kind):
        return _maps(column, depth)
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return _lists(column, depth)
    return _scalars(column, "00")


def _stored(storage: pa.Array, subtype: str, depth: int) -> Texts:
    if kinds.is_fixed_size_binary(storage.type):
        return _scalars(storage, subtype)
    return column_texts(storage, depth + 1)


def _scalars(column: pa.Array, subtype: str) -> Texts:
    kind = column.type
    if kinds.is_null(kind):
        return Texts([None] * len(column))
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return _strings(column)
    if kinds.is_floating(kind):
        return _mapped(column.cast(pa.float64()).to_pylist(), _double)
    if kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_binary_view(kind):
        return _mapped(column.to_pylist(), lambda value: _binary(value, subtype))
    if kinds.is_fixed_size_binary(kind):
        return _mapped(column.to_pylist(), lambda value: _binary(value, subtype))
    return _mapped(*_numbers(column))


def _numbers(column: pa.Array) -> tuple[_Values, Callable[[object], str]]:
    """Return the numbers by which values are stored, and how each is written."""
    kind = column.type
    if kinds.is_boolean(kind):
        return column.to_pylist(), lambda value: "true" if value else "false"
    if kinds.is_integer(kind):
        return column.to_pylist(), str if str(kind) in _INT32 else _int64
    if kinds.is_decimal(kind):
        return column.to_pylist(), _decimal
    if kinds.is_date(kind):
        width, per = (pa.int32(), _DAY_MS) if kinds.is_date32(kind) else (pa.int64(), 1)
        return column.cast(width).to_pylist(), lambda value: _date(_number(value) * per)
    if kinds.is_timestamp(kind):
        per_s = _PER_SECOND[kind.unit]
        return column.cast(pa.int64()).to_pylist(), lambda v: _date(_number(v) * 1_000 // per_s)
    if kinds.is_time(kind):
        width = pa.int32() if kinds.is_time32(kind) else pa.int64()
        per_s = _PER_SECOND[kind.unit]
        return column.cast(width).to_pylist(), lambda value: _time(_number(value), per_s)
    if kinds.is_duration(kind):
        return column.cast(pa.int64()).to_pylist(), _int64
    raise UnsupportedColumn(str(kind))


def _mapped(values: _Values, write: Callable[[object], str]) -> Texts:
    """Write each value. A `ValueError` of `write` becomes the problem of the row."""
    result = Texts([])
    for row, value in enumerate(values):
        text = None
        if value is not None:
            try:
                text = write(value)
            except ValueError as error:
                result.problems[row] = str(error)
        result.texts.append(text)
    return result


def _strings(column: pa.Array) -> Texts:
    try:
        return _mapped(column.to_pylist(), _string)
    except UnicodeDecodeError:
        return _mapped(column.cast(pa.large_binary()).to_pylist(), _utf8)


def _string(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _utf8(value: object) -> str:
    try:
        return _string(bytes(value).decode() if isinstance(value, bytes) else value)
    except UnicodeDecodeError:
        raise ValueError("The text is not UTF-8.") from None


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(type(value))
    return value


def _int64(value: object) -> str:
    number = _number(value)
    kind = "$numberLong" if _INT64_MIN <= number <= _INT64_MAX else "$numberDecimal"
    return f'{{"{kind}":"{number}"}}'


def _double(value: object) -> str:
    text = repr(value)
    special = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text)
    return text if special is None else f'{{"$numberDouble":"{special}"}}'


def _decimal(value: object) -> str:
    if not isinstance(value, Decimal):
        raise TypeError(type(value))
    if len(value.as_tuple().digits) > _DECIMAL_DIGITS:
        raise ValueError(f"{value} has more than {_DECIMAL_DIGITS} digits.")
    return f'{{"$numberDecimal":"{value}"}}'


def _date(milliseconds: int) -> str:
    if not _INT64_MIN <= milliseconds <= _INT64_MAX:
        raise ValueError("The date is out of range.")
    return f'{{"$date":{{"$numberLong":"{milliseconds}"}}}}'


def _time(value: int, per_second: int) -> str:
    seconds, part = divmod(value, per_second)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    fraction = f".{part:0{len(str(per_second)) - 1}d}".rstrip("0") if part else ""
    return f'"{hour:02d}:{minute:02d}:{second:02d}{fraction}"'


def _binary(value: object, subtype: str) -> str:
    if not isinstance(value, bytes):
        raise TypeError(type(value))
    return f'{{"$binary":{{"base64":"{b64encode(value).decode()}","subType":"{subtype}"}}}}'


def _dictionary(column: pa.Array, depth: int) -> Texts:
    """Write each entry of the dictionary once: rows share its text."""
    entries = column_texts(column.dictionary, depth + 1)
    result = Texts([])
    for row, index in enumerate(column.indices.to_pylist()):
        if index in entries.problems:
            result.problems[row] = entries.problems[index]
        result.texts.append(None if index is None else entries.texts[index])
    return result


def _structs(column: pa.Array, depth: int) -> Texts:
    names = [json.dumps(part.name, ensure_ascii=False) for part in column.type]
    parts = [column_texts(part, depth + 1) for part in column.flatten()]
    is_valid = column.is_valid().to_pylist()
    result = Texts([])
    for row, valid in enumerate(is_valid):
        problem = next((p.problems[row] for p in parts if row in p.problems), None)
        if problem is not None and valid:
            result.problems[row] = problem
        result.texts.append(_object(names, [p.texts[row] for p in parts]) if valid else None)
    return result


def _object(names: Sequence[str], texts: Sequence[str | None]) -> str:
    """Return an object; members without a value are left out."""
    members = zip(names, texts, strict=True)
    return "{" + ",".join(f"{name}:{text}" for name, text in members if text is not None) + "}"


def _lists(column: pa.Array, depth: int) -> Texts:
    if kinds.is_fixed_size_list(column.type):
        column = column.cast(pa.large_list(column.type.value_type))
    items = column_texts(column.flatten(), depth + 1)

    def write(begin: int, end: int) -> str:
        return "[" + ",".join(text or "null" for text in items.texts[begin:end]) + "]"

    return _ranges(column, items.problems, write)


def _maps(column: pa.Array, depth: int) -> Texts:
    kind = column.type
    pairs = column.cast(
        pa.list_(pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)]))
    )
    if not _is_text(kind.key_type):
        return _lists(pairs, depth)
    entries = pairs.flatten()
    keys = column_texts(entries.field("key"), depth + 1)
    values = column_texts(entries.field("value"), depth + 1)

    def write(begin: int, end: int) -> str:
        members = zip(keys.texts[begin:end], values.texts[begin:end], strict=True)
        return "{" + ",".join(f"{key}:{value or 'null'}" for key, value in members) + "}"

    return _ranges(pairs, {**keys.problems, **values.problems}, write)


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if kinds.is_dictionary(kind) else kind
    return bool(kinds.is_string(inner) or kinds.is_large_string(inner))


def _ranges(
    lists: pa.Array, problems: Mapping[int, str], write: Callable[[int, int], str]
) -> Texts:
    """Write each list. The items lie one after the other, without those of null lists."""
    result, begin = Texts([]), 0
    for row, length in enumerate(lists.value_lengths().to_pylist()):
        end = begin + (length or 0)
        problem = None
        if problems:
            problem = next((problems[item] for item in range(begin, end) if item in problems), None)
        if problem is not None:
            result.problems[row] = problem
        result.texts.append(None if length is None else write(begin, end))
        begin = end
    return result
