"""Sources of an upload to a dataset, as bodies that are read while they are sent."""

from __future__ import annotations

import datetime
import io
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from rillbase.http import UploadStream

if TYPE_CHECKING:
    import pandas
    import pyarrow

RowOperation: TypeAlias = Literal["insert", "update", "delete"]
#: A file whose format follows from its name, a table of Arrow or pandas, or rows.
Source: TypeAlias = (
    "str | PathLike[str] | pyarrow.Table | pandas.DataFrame | Iterable[Mapping[str, object]]"
)

LINES = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
_BY_SUFFIX = {
    ".ndjson": LINES,
    ".jsonl": LINES,
    ".arrow": ARROW,
    ".arrows": ARROW,
    ".parquet": PARQUET,
}


@dataclass(frozen=True, slots=True)
class UploadBody:
    """Rows that are ready to be sent."""

    content: UploadStream
    content_type: str


def body_of(source: Source, table: str, op: RowOperation) -> UploadBody:
    """Return the body that uploads a source.

    The lines of a file contain their tables and operations.
    """
    if isinstance(source, str | PathLike):
        return _file(Path(source))
    if _is_a(source, "pyarrow", "Table"):
        return _arrow(source)
    if _is_a(source, "pandas", "DataFrame"):
        import pyarrow as pa  # noqa: PLC0415 -- an extra

        return _arrow(pa.Table.from_pandas(source, preserve_index=False))
    return _in_memory(b"".join(_line(table, op, row) for row in source), LINES)


def _is_a(source: object, module: str, name: str) -> bool:
    """Return the kind of a source, without importing packages that may not be installed."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(source, kind)


def _file(path: Path) -> UploadBody:
    kind = _BY_SUFFIX.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"{path.name} should end in one of {', '.join(_BY_SUFFIX)}.")
    return UploadBody(UploadStream(path.stat().st_size, lambda: path.open("rb")), kind)


def _arrow(table: pyarrow.Table) -> UploadBody:
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return _in_memory(sink.getvalue(), ARROW)


def _in_memory(content: bytes | memoryview | pyarrow.Buffer, kind: str) -> UploadBody:
    view = memoryview(content)
    return UploadBody(UploadStream(view.nbytes, lambda: io.BytesIO(view)), kind)


def _line(table: str, op: RowOperation, row: Mapping[str, object]) -> bytes:
    """An update sets a column to null by naming it: omitted columns are unchanged."""
    cleared = [name for name, value in row.items() if value is None] if op == "update" else []
    line: dict[str, object] = {
        table: {name: value for name, value in row.items() if name not in cleared},
        "op": op,
    }
    if cleared:
        line["null"] = cleared
    text = json.dumps(line, default=_plain, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def _plain(value: object) -> str:
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone.")
    if isinstance(value, datetime.date):
        return value.isoformat()
    raise TypeError(f"A {type(value).__name__} cannot be stored in a column.")
