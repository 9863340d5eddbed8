"""A record of a file, and how JSON becomes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from foundation.errors import InvalidDocument
from rillbase_native import DocumentMapping, Value


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """A record of a file.

    `read` returns its document, None for a blank line, or raises `QueryError` or `ApiError`.
    """

    #: The line on which it begins; in Parquet, the number of the row.
    line: int
    size: int
    read: Callable[[], Value | None]


def json_record(line: int, text: bytes, mapping: DocumentMapping | None) -> ImportRecord:
    """Return the record of one JSON text."""

    def read() -> Value | None:
        if not text.strip():
            return None
        document = Value.parse_document(text)
        if document.kind != "object":
            raise InvalidDocument("Each line must be a document, an object.")
        return document if mapping is None else mapping.document(document)

    return ImportRecord(line, len(text), read)
