"""The documents of a JSON file with their places in it, to report errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from analytics.ingest.line_errors import (
    FilePiece,
    LineProblem,
    SourceRecord,
    body_parts,
)
from analytics.ingest.lines import MAX_BLOCK_BYTES
from foundation.errors import InvalidBody
from rillbase_native import JsonItemReader, QueryError

#: Bytes that are read for a piece.
_PART_BYTES = 256 * 1024
#: Bytes of UTF-8 that begin no character.
_CONTINUATION = bytes(range(0x80, 0xC0))


class _Records:
    """Reads the documents of a file, and counts its lines and columns."""

    def __init__(self) -> None:
        self._texts = JsonItemReader(MAX_BLOCK_BYTES)
        self._rows = JsonItemReader(MAX_BLOCK_BYTES, one_line=True)
        self._line = self._column = 1

    def push(self, part: bytes) -> list[SourceRecord]:
        """Return the complete documents, or raise `QueryError`."""
        pairs = zip(self._texts.push(part), self._rows.push(part), strict=True)
        records = [
            SourceRecord(line, column, text, row) for (line, column, text), (_, _, row) in pairs
        ]
        complete, line_end, rest = part.rpartition(b"\n")
        self._line += complete.count(b"\n") + len(line_end)
        self._column = (1 if line_end else self._column) + len(rest.translate(None, _CONTINUATION))
        return records

    def finish(self) -> None:
        self._texts.finish()

    def rejection(self, error: QueryError) -> InvalidBody:
        """Return the error of the current place."""
        detail = error.detail.removeprefix(f"Line {self._line}: ").removesuffix(".")
        detail = detail[:1].lower() + detail[1:]
        problem = LineProblem(self._line, self._column, detail, code="malformed")
        shown = problem.as_field_problem()
        return InvalidBody(shown.detail, errors=[shown])


def item_pieces(body: pa.Buffer) -> Iterator[FilePiece]:
    """Yield the documents of a file; then raise `InvalidBody` if it is malformed around them."""
    records = _Records()
    for number, part in enumerate(body_parts(body, _PART_BYTES)):
        try:
            yield _piece(records.push(part))
        except QueryError:
            yield from _pieces_before_error(body, number)
    try:
        records.finish()
    except QueryError as error:
        raise records.rejection(error) from None


def _pieces_before_error(body: pa.Buffer, parts: int) -> Iterator[FilePiece]:
    """Yield the documents of the part after these; then raise `InvalidBody` at its error."""
    records, complete = _Records(), list[SourceRecord]()
    for number, part in enumerate(body_parts(body, _PART_BYTES)):
        if number < parts:
            records.push(part)
            continue
        for index in range(len(part)):
            try:
                complete += records.push(part[index : index + 1])
            except QueryError as error:
                yield _piece(complete)
                raise records.rejection(error) from None


def _piece(records: Sequence[SourceRecord]) -> FilePiece:
    rows = b"".join(record.row + b"\n" for record in records)
    return FilePiece(rows, lambda: records)
