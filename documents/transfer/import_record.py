"""A record of a file, and how JSON becomes one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from foundation.errors import ApiError, InvalidDocument
from foundation.file_errors import place_in_file
from foundation.refusals import as_api_error
from rillbase_native import DocumentMapping, QueryError, Value

#: Where a text is malformed, at the end of a detail.
_PLACE = re.compile(r"\(line (\d+), column (\d+)\)$")


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """A record of a file.

    `read` returns its document, None for a blank line, or raises `QueryError` or `ApiError`.
    """

    #: The line on which it begins; in Parquet, the number of the row.
    line: int
    size: int
    read: Callable[[], Value | None]
    #: The column at which it begins, where a line may have several records.
    column: int | None = None

    @property
    def place(self) -> tuple[int, int]:
        """The place in the file, by which records are sorted."""
        return self.line, self.column or 1


def json_record(
    line: int, text: bytes, mapping: DocumentMapping | None, column: int | None = None
) -> ImportRecord:
    """Return the record of one JSON text, which begins at this place of the file."""

    def read() -> Value | None:
        if not text.strip():
            return None
        try:
            document = Value.parse_document(text)
        except QueryError as error:
            raise _in_file(as_api_error(error), line, column or 1) from None
        if document.kind != "object":
            raise InvalidDocument("Each record must be a document, an object.")
        return document if mapping is None else mapping.document(document)

    return ImportRecord(line, len(text), read, column)


def _in_file(error: ApiError, line: int, column: int) -> ApiError:
    """Replace the place in a text by the place in the file."""
    place = _PLACE.search(error.detail)
    if place is None:
        return error
    line, column = place_in_file((int(place[1]), int(place[2])), line, column)
    detail = f"{error.detail[: place.start()]}(line {line}, column {column})"
    return type(error)(detail, errors=[replace(one, detail=detail) for one in error.errors])
