"""The formats of files, and how a caller describes one: delimiter, header, columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from foundation.errors import FieldProblem, InvalidParameter
from foundation.json_body import parse_json_body
from foundation.refusals import as_api_error
from rillbase_native import DocumentMapping, QueryError

NDJSON, JSON, CSV = "application/x-ndjson", "application/json", "text/csv"
PARQUET = "application/vnd.apache.parquet"
MEDIA_TYPES = (NDJSON, JSON, CSV, PARQUET)
#: The parameters that describe a file.
PARAMETERS = ("columns", "delimiter", "header")
MAX_COLUMNS = 1_000

_DELIMITERS: Mapping[str, str] = {",": ",", ";": ";", "|": "|", "tab": "\t"}
_MEMBERS = frozenset({"from", "to", "type"})
_MAX_PATH_NAMES = 16


class TextType(StrEnum):
    """The types that a column's texts may have."""

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    JSON = "json"
    OBJECT_ID = "objectId"


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """A column of a file and the field that it becomes. Without a type, texts stay texts."""

    source: str
    target: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How a file is read. Without columns, all of them are read."""

    media_type: str
    delimiter: str = ","
    has_header: bool = True
    columns: tuple[ColumnMapping, ...] | None = None

    def mapping(self) -> DocumentMapping | None:
        """Return how documents are made of the columns; None: they are read as they are."""
        return None if self.columns is None else mapping_of(self.columns)


def read_format(media_type: str, given: Mapping[str, str]) -> FileFormat:
    """Return the format that parameters describe, or raise `InvalidParameter`."""
    header = given.get("header", "true")
    if header not in ("true", "false"):
        raise _wrong("header", "Expected `true` or `false`.")
    columns = given.get("columns")
    return FileFormat(
        media_type,
        read_delimiter(given),
        header == "true",
        None if columns is None else _columns(columns),
    )


def read_delimiter(given: Mapping[str, str]) -> str:
    delimiter = given.get("delimiter", ",")
    if delimiter not in _DELIMITERS:
        raise _wrong("delimiter", f"One of {' '.join(_DELIMITERS)}.")
    return _DELIMITERS[delimiter]


def delimiter_name(delimiter: str) -> str:
    """Return a delimiter as the parameter writes it."""
    return next(name for name, character in _DELIMITERS.items() if character == delimiter)


def mapping_of(columns: Sequence[ColumnMapping]) -> DocumentMapping:
    """Return the mapping of these columns, or raise if it is inconsistent."""
    try:
        return DocumentMapping([(c.source, c.target, c.type) for c in columns])
    except QueryError as error:
        raise as_api_error(error, "columns") from None


def unique_names(header: Sequence[str | None]) -> list[str]:
    """Return the names of a file's columns: numbers for those without, and no name twice."""
    names: list[str] = []
    taken: set[str] = set()
    for index, text in enumerate(header, 1):
        name = (text or "").strip() or f"column{index}"
        count, unique = 1, name
        while unique in taken:
            count += 1
            unique = f"{name}_{count}"
        taken.add(unique)
        names.append(unique)
    return names


def default_path(name: str) -> str:
    """Return the field that a column becomes by default. Dots separate nested documents."""
    path = name.replace("\0", "").lstrip("$") or "column"
    names = path.split(".")
    is_path = all(part and not part.startswith("$") for part in names)
    return path if is_path and len(names) <= _MAX_PATH_NAMES else path.replace(".", "_")


def _columns(text: str) -> tuple[ColumnMapping, ...]:
    entries = parse_json_body(text.encode())
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_COLUMNS:
        raise _wrong("columns", f"Expected a JSON array of 1 to {MAX_COLUMNS} columns.")
    return tuple(_column(entry, f"columns/{index}") for index, entry in enumerate(entries))


def _column(entry: object, pointer: str) -> ColumnMapping:
    if not isinstance(entry, dict) or not entry.keys() <= _MEMBERS:
        raise _wrong(pointer, 'Expected an object such as {"from": "Price", "to": "price"}.')
    source, target, kind = entry.get("from"), entry.get("to", entry.get("from")), entry.get("type")
    if not isinstance(source, str) or not isinstance(target, str):
        raise _wrong(pointer, "`from` and `to` are names.")
    if kind is not None and kind not in tuple(TextType):
        raise _wrong(pointer, f"`type` is one of {', '.join(TextType)}.")
    return ColumnMapping(source, target, None if kind is None else str(kind))


def _wrong(name: str, detail: str) -> InvalidParameter:
    return InvalidParameter(errors=[FieldProblem(name, "invalid", detail)])
