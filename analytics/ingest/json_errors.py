"""Explains why a JSON record is rejected: its syntax, its members, or a value."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.json

import rillbase_native
from analytics.ingest.line_errors import (
    EXPECTED,
    LineProblem,
    SourceRecord,
    mismatch,
    unexpected,
)
from analytics.ingest.operations import RowOperation
from analytics.schema import AnalyticsTable
from foundation.errors import ApiError
from foundation.file_errors import place_in_file
from foundation.json_body import MAX_DEPTH, MAX_VALUES
from foundation.json_types import JsonObject, JsonValue

UNKNOWN_COLUMN = "The table has no such column."
_NO_KEY = "The key must have a value."


class MalformedRecord(Exception):
    """The text of a record is not JSON."""

    def __init__(self, problem: LineProblem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class RowMembers:
    """The members of a row, and the columns of a table that they become."""

    table: AnalyticsTable
    sources: Mapping[str, str]
    #: Whether other members are ignored.
    ignores_others: bool = False
    #: How a member is named before its own name.
    prefix: str = ""

    def problems(self, record: SourceRecord, row: JsonValue) -> Iterator[LineProblem]:
        """Yield what is wrong with a row."""
        whole = LineProblem(record.line, record.column, "", pointer=f"/{self.table.name}")
        if not isinstance(row, dict):
            name = self.prefix.rstrip(".")
            yield replace(whole, field=name, detail=unexpected("an object", row))
            return
        for name, value in row.items():
            at = replace(whole, field=f"{self.prefix}{name}", pointer=f"{whole.pointer}/{name}")
            if name in self.sources:
                target = self.sources[name]
                at = replace(at, pointer=f"{whole.pointer}/{target}")
                yield from _value_problems(self.table, target, value, at)
            elif not self.ignores_others:
                yield replace(at, code="unknown_column", detail=UNKNOWN_COLUMN)
        for source, target in self.sources.items():
            if target in self.table.key and row.get(source) is None:
                field, pointer = f"{self.prefix}{source}", f"{whole.pointer}/{target}"
                yield replace(whole, field=field, pointer=pointer, code="no_key", detail=_NO_KEY)


def parse_record(record: SourceRecord) -> JsonValue:
    """Return the value of a record, or raise `MalformedRecord`."""
    try:
        return rillbase_native.parse_json(record.text, max_depth=MAX_DEPTH, max_values=MAX_VALUES)
    except rillbase_native.JsonError as error:
        place = place_in_file((error.line, error.column), record.line, record.column or 1)
        detail = str(error).removesuffix(f" at line {error.line} column {error.column}")
        raise MalformedRecord(LineProblem(*place, detail, code="malformed")) from None


def other_problem(record: SourceRecord, error: ApiError) -> LineProblem:
    """Return the problem of a record by its error."""
    at = LineProblem(record.line, record.column, error.detail, code="invalid")
    if not error.errors:
        return at
    first = error.errors[0]
    field = first.pointer.strip("/").replace("/", ".")
    return replace(at, field=field, pointer=first.pointer, code=first.code, detail=first.detail)


def _value_problems(
    table: AnalyticsTable, target: str, value: JsonValue, at: LineProblem
) -> Iterator[LineProblem]:
    parts = table.parts.get(target)
    if parts is None:
        kind = table.shown[target]
        if not _fits(value, table.types[target]):
            yield replace(at, detail=mismatch(kind, value))
    elif value is not None:
        yield from _key_problems(parts, value, at)


def _key_problems(
    parts: Mapping[str, pa.DataType], value: JsonValue, at: LineProblem
) -> Iterator[LineProblem]:
    """Yield what is wrong with a composite key."""
    if not isinstance(value, dict) or set(value) != set(parts):
        fields = f"an object with the fields {', '.join(parts)}"
        detail = f"expected {fields}" if isinstance(value, dict) else unexpected(fields, value)
        yield replace(at, detail=detail)
        return
    for name, kind in parts.items():
        if value[name] is None or not _fits(value[name], kind):
            expected = EXPECTED["string" if pa.types.is_string(kind) else str(kind)]
            field = f"{at.field}.{name}"
            yield replace(at, field=field, detail=unexpected(expected, value[name]))


def _fits(value: JsonValue, kind: pa.DataType) -> bool:
    """Return whether Arrow's reader accepts a value."""
    is_day = pa.types.is_date(kind)
    sample: JsonObject = {"value": value}
    text = json.dumps(sample).encode()
    schema = pa.schema([("value", pa.string() if is_day else kind)])
    try:
        column = pa.json.read_json(
            io.BytesIO(text),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=pa.json.ParseOptions(explicit_schema=schema),
        )["value"]
        if is_day:
            column.cast(pa.date32())
    except pa.ArrowInvalid:
        return False
    return True


def row_problems(members: RowMembers, record: SourceRecord, error: ApiError) -> list[LineProblem]:
    """Return the problems of a rejected row of one table."""
    try:
        problems = list(members.problems(record, parse_record(record)))
    except MalformedRecord as malformed:
        return [malformed.problem]
    return problems or [other_problem(record, error)]


def line_problems(
    tables: Mapping[str, AnalyticsTable], record: SourceRecord, error: ApiError
) -> list[LineProblem]:
    """Return the problems of a rejected line that names its table."""
    try:
        problems = list(_members_problems(tables, record, parse_record(record)))
    except MalformedRecord as malformed:
        return [malformed.problem]
    return problems or [other_problem(record, error)]


def _members_problems(
    tables: Mapping[str, AnalyticsTable], record: SourceRecord, line: JsonValue
) -> Iterator[LineProblem]:
    whole = LineProblem(record.line, record.column, "")
    if not isinstance(line, dict):
        yield replace(whole, detail=unexpected("an object", line))
        return
    for name, value in line.items():
        at = replace(whole, field=name)
        if name in tables:
            columns = {column: column for column in tables[name].columns}
            if value is not None:
                members = RowMembers(tables[name], columns, prefix=f"{name}.")
                yield from members.problems(record, value)
        elif name == "op":
            if value is not None and value not in tuple(RowOperation):
                yield replace(at, detail=unexpected("insert, update or delete", value))
        elif name == "null":
            names = value if isinstance(value, list) else None
            if value is not None and (
                names is None or any(not isinstance(one, str | None) for one in names)
            ):
                yield replace(at, detail=unexpected("an array of columns", value))
        else:
            detail = "The dataset has no such table."
            yield replace(at, pointer=f"/{name}", code="unknown_table", detail=detail)
