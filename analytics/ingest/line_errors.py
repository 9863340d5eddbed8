"""How errors of the lines of a file are reported: the place, the column, the expected value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import pyarrow as pa

from foundation.errors import ApiError, FieldProblem, InvalidUpload
from foundation.file_errors import received
from foundation.json_types import JsonValue

MAX_PROBLEMS = 100
#: The value that a column expects, by the type of the column.
EXPECTED: Mapping[str, str] = {
    "bool": "true or false",
    "int32": "an integer of 32 bits",
    "int64": "an integer of 64 bits",
    "double": "a number",
    "string": "a string",
    "date": "a day such as 2026-11-21",
    "timestamp": "a time such as 2026-11-21T08:00:00Z",
}


@dataclass(frozen=True, slots=True)
class LineProblem:
    """Why a record of a file is rejected."""

    #: The line, and the column where a line may have several records or the text is malformed.
    line: int
    column: int | None
    detail: str
    #: The column as the file names it; empty if the whole record is rejected.
    field: str = ""
    #: The table and its column.
    pointer: str = ""
    code: str = "wrong_type"

    def as_field_problem(self) -> FieldProblem:
        place = f"line {self.line}" + ("" if self.column is None else f", column {self.column}")
        field = f"{self.field}: " if self.field else ""
        return FieldProblem(self.pointer, self.code, f"{place}: {field}{self.detail}")


def mismatch(kind: str, value: JsonValue) -> str:
    """Return the detail for a value that does not fit a column of this type."""
    return unexpected(EXPECTED[kind], value)


def unexpected(expected: str, value: JsonValue) -> str:
    """Return the detail for a value in place of the expected one."""
    if isinstance(value, str):
        return f"expected {expected}, {received('string', value)}"
    kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "other"
    text = json.dumps(value, ensure_ascii=False)
    return f"expected {expected}, {received(kind, text)}"


def reject_lines(problems: Iterable[LineProblem]) -> None:
    """Raise `InvalidUpload` if there are problems; it names the first ones."""
    in_order = sorted(problems, key=lambda one: (one.line, one.column or 0, one.pointer))
    if in_order:
        errors = [problem.as_field_problem() for problem in in_order[:MAX_PROBLEMS]]
        raise InvalidUpload(errors[0].detail, errors=errors)


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A record of a JSON file and its place."""

    line: int
    #: The column at which it begins, where a line may have several records.
    column: int | None
    text: bytes
    #: Its text in one line.
    row: bytes


@dataclass(frozen=True, slots=True)
class FilePiece:
    """Some successive records of a file: one per line, and on request with their places."""

    rows: bytes
    records: Callable[[], Sequence[SourceRecord]]


#: Reads rows, one per line, and raises `InvalidUpload` if one of them is invalid.
RowsCheck: TypeAlias = Callable[[bytes], None]
#: Returns the problems of a rejected record, from its error.
RecordExplanation: TypeAlias = Callable[[SourceRecord, ApiError], Iterable[LineProblem]]


def reject_records(
    pieces: Iterable[FilePiece], check: RowsCheck, explain: RecordExplanation
) -> None:
    """Raise `InvalidUpload` with the problems of the first piece that has some."""
    for piece in pieces:
        if _error_of(piece.rows, check) is None:
            continue
        rejected = islice(_rejected(piece.records(), check), MAX_PROBLEMS)
        reject_lines([one for record, error in rejected for one in explain(record, error)])


def _rejected(
    records: Sequence[SourceRecord], check: RowsCheck
) -> Iterator[tuple[SourceRecord, ApiError]]:
    """Yield the invalid records, which halving finds: few are, and a check costs far more than a
    record.
    """
    error = _error_of(b"".join(record.row + b"\n" for record in records), check)
    if error is None:
        return
    if len(records) == 1:
        yield records[0], error
        return
    middle = len(records) // 2
    yield from _rejected(records[:middle], check)
    yield from _rejected(records[middle:], check)


def _error_of(rows: bytes, check: RowsCheck) -> ApiError | None:
    try:
        check(rows)
    except InvalidUpload as error:
        return error
    return None


#: Bytes of a piece.
_PIECE_BYTES = 256 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def line_pieces(body: pa.Buffer) -> Iterator[FilePiece]:
    """Yield the lines of an NDJSON file."""
    line, rest = 1, b""
    for text in body_parts(body, _PIECE_BYTES):
        complete, line_end, incomplete = text.rpartition(b"\n")
        if not line_end:
            rest += text
            continue
        yield _lines_from(line, rest + complete)
        line += (rest + complete).count(b"\n") + 1
        rest = incomplete
    if rest:
        yield _lines_from(line, rest)


def _lines_from(first: int, text: bytes) -> FilePiece:
    def records() -> list[SourceRecord]:
        lines = enumerate(text.split(b"\n"), first)
        return [SourceRecord(number, None, line, line) for number, line in lines]

    return FilePiece(text, records)


def body_parts(body: pa.Buffer, part_bytes: int) -> Iterator[bytes]:
    """Yield a body in parts, without its byte order mark."""
    for start in range(0, body.size, part_bytes):
        part = body.slice(start, min(part_bytes, body.size - start)).to_pybytes()
        yield part.removeprefix(_BYTE_ORDER_MARK) if start == 0 else part
