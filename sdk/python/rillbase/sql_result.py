"""The result of a statement as rows of Python's values."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rillbase.shapes import Document

if TYPE_CHECKING:
    import pyarrow

#: Rows that are converted at once.
BATCH_ROWS = 4_096
ZONED, LOCAL = "TIMESTAMP WITH TIME ZONE", "TIMESTAMP"
#: Sums of integers have up to 128 bits. Arrow has no such integers.
WIDE_INTEGER, WIDE_DIGITS = "HUGEINT", 38
MONTH_DAYS = 30
_DURATION = re.compile(r"P(-?\d+)M(-?\d+)DT(-?[\d.]+)S")


@dataclass(frozen=True, slots=True)
class SqlResult:
    """The columns of a result with their types, the number of rows, and the rows."""

    columns: Sequence[tuple[str, str]]
    count: int
    rows: Iterator[tuple[object, ...]]


def from_arrow(table: pyarrow.Table) -> SqlResult:
    """Return a table's rows, which are converted while they are read."""
    columns = [(field.name, sql_type(field.type)) for field in table.schema]
    return SqlResult(columns, table.num_rows, _rows(table))


def _rows(table: pyarrow.Table) -> Iterator[tuple[object, ...]]:
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pyarrow.Array) -> list[object]:
    kind = sql_type(column.type)
    if kind == ZONED:
        import pyarrow as pa  # noqa: PLC0415 -- an extra

        # The name of the zone would need a database of time zones.
        column = column.cast(pa.timestamp(column.type.unit, "+00:00"))
    values: list[object] = column.to_pylist()
    convert = _ARROW_READERS.get(kind)
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


def _timedelta(months: int, days: int, nanoseconds: int) -> datetime.timedelta:
    """Return a duration, in which months have 30 days."""
    return datetime.timedelta(MONTH_DAYS * months + days, microseconds=nanoseconds // 1_000)


def _duration(text: str) -> datetime.timedelta:
    """Return a duration of an answer in JSON."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration")
    months, days, seconds = match.groups()
    return _timedelta(int(months), int(days), int(Decimal(seconds) * 1_000_000_000))


_ARROW_READERS: Mapping[str, Callable[[Any], object]] = {
    WIDE_INTEGER: int,
    "INTERVAL": lambda interval: _timedelta(*interval),
}


def sql_type(kind: pyarrow.DataType) -> str:
    """Return the SQL type of an Arrow type."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    types = pa.types
    if types.is_timestamp(kind):
        return ZONED if kind.tz else LOCAL
    if types.is_decimal(kind):
        is_whole = (kind.precision, kind.scale) == (WIDE_DIGITS, 0)
        return WIDE_INTEGER if is_whole else f"DECIMAL({kind.precision},{kind.scale})"
    if types.is_dictionary(kind):
        return sql_type(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return f"{sql_type(kind.value_type)}[]"
    if types.is_struct(kind):
        return "STRUCT"
    if types.is_map(kind):
        return "MAP"
    return _SQL_TYPES.get(str(kind), str(kind).upper())


_SQL_TYPES: Mapping[str, str] = {
    "null": "NULL",
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "large_string": "VARCHAR",
    "string_view": "VARCHAR",
    "binary": "BLOB",
    "large_binary": "BLOB",
    "date32[day]": "DATE",
    "time64[us]": "TIME",
    "month_day_nano_interval": "INTERVAL",
}


def from_json(columns: Sequence[Document], rows: Sequence[Document]) -> SqlResult:
    """Return the rows of an answer in JSON."""
    named = [(column["name"], column["type"]) for column in columns]
    readers = [(name, _JSON_READERS.get(kind)) for name, kind in named]
    converted = (
        tuple(
            row[name] if read is None or row[name] is None else read(row[name])
            for name, read in readers
        )
        for row in rows
    )
    return SqlResult(named, len(rows), converted)


#: Values of other types need no conversion.
_JSON_READERS: Mapping[str, Callable[[str], object]] = {
    "DATE": datetime.date.fromisoformat,
    "TIME": datetime.time.fromisoformat,
    "INTERVAL": _duration,
    LOCAL: datetime.datetime.fromisoformat,
    ZONED: datetime.datetime.fromisoformat,
}
