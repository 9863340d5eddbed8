"""The formats of exports, and what a caller requests of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from documents.transfer.formats import CSV, JSON, MAX_COLUMNS, NDJSON, PARQUET, read_delimiter
from foundation.errors import FieldProblem, InvalidParameter
from rillbase_native import CsvWriter

OUTPUT_PARAMETERS = ("format", "fields", "delimiter", "formulas")


class OutputFormat(StrEnum):
    """The formats of exports."""

    NDJSON = "ndjson"
    JSON = "json"
    CSV = "csv"
    #: Only for results of queries: a collection has no types before all of it has been read.
    PARQUET = "parquet"


#: The formats in which a whole collection can be written.
EXPORT_FORMATS = (OutputFormat.NDJSON, OutputFormat.JSON, OutputFormat.CSV)
_MEDIA_TYPES: Mapping[OutputFormat, str] = {
    OutputFormat.NDJSON: NDJSON,
    OutputFormat.JSON: JSON,
    OutputFormat.CSV: f"{CSV}; charset=utf-8",
    OutputFormat.PARQUET: PARQUET,
}


@dataclass(frozen=True, slots=True)
class Output:
    """How documents are written."""

    format: OutputFormat
    #: The columns of CSV; None: the fields that the documents have.
    fields: tuple[str, ...] | None = None
    delimiter: str = ","
    escapes_formulas: bool = True

    @property
    def media_type(self) -> str:
        return _MEDIA_TYPES[self.format]

    def headers(self, name: str) -> dict[str, str]:
        """Return the headers under which a browser saves the file."""
        return {"Content-Disposition": f'attachment; filename="{name}.{self.format}"'}

    def csv_writer(self, columns: Sequence[str]) -> CsvWriter:
        return CsvWriter(
            list(columns), delimiter=self.delimiter, escape_formulas=self.escapes_formulas
        )


def read_output(given: Mapping[str, str], accept: str) -> Output:
    """Return what parameters request, or else the header `Accept`."""
    requested = given.get("format", "csv" if requests_csv(accept) else "ndjson")
    if requested not in EXPORT_FORMATS:
        raise _wrong("format", f"One of {', '.join(EXPORT_FORMATS)}.")
    formulas = given.get("formulas", "escape")
    if formulas not in ("escape", "keep"):
        raise _wrong("formulas", "One of escape, keep.")
    fields = given.get("fields")
    return Output(
        OutputFormat(requested),
        None if fields is None else _fields(fields),
        read_delimiter(given),
        formulas == "escape",
    )


def requests_csv(accept: str) -> bool:
    return CSV in accept


def check_count(columns: Sequence[str]) -> None:
    """Raise `InvalidParameter` if there are more columns than a file may have."""
    if len(columns) > MAX_COLUMNS:
        detail = f"The documents have more than {MAX_COLUMNS} fields: list the columns in `fields`."
        raise _wrong("fields", detail)


def _fields(text: str) -> tuple[str, ...]:
    fields = tuple(name.strip() for name in text.split(","))
    if not all(fields) or len(set(fields)) < len(fields) or len(fields) > MAX_COLUMNS:
        raise _wrong("fields", f"Expected at most {MAX_COLUMNS} different paths, such as a,b.c.")
    return fields


def _wrong(name: str, detail: str) -> InvalidParameter:
    return InvalidParameter(errors=[FieldProblem(name, "invalid", detail)])
