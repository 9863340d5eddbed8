"""Reads rows of a Parquet file as Extended JSON. Runs only in worker processes.

Counts, lengths and statistics in the file are never trusted: the kernel bounds the memory, CPU time
and files of the process, and rows are counted as they are written.

The files are the body and the output. The output has a line for each row: `=` and the document, or
`!` and a JSON array of a column and what is wrong with its value.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

import pyarrow as pa
import pyarrow.parquet as pq

from data_plane.lines import MAX_LINE_BYTES
from documents.transfer.formats import MAX_COLUMNS
from documents.transfer.parquet.column_texts import UnsupportedColumn, column_texts
from documents.transfer.parquet.parquet_file import READ_ERRORS, open_parquet
from foundation.json_types import JsonObject

#: Bytes of values that are in memory at once, by the file's own account, and rows.
_BATCH_BYTES, _BATCH_ROWS = 8 * 1024 * 1024, 4_096
_MAX_NAME_CHARS, _MAX_TYPE_CHARS, _MAX_DETAIL_CHARS = 500, 200, 400
_ROW, _PROBLEM = b"=", b"!"


class ReadRequest(TypedDict):
    """A request to read some rows of a file."""

    #: The columns to read; None: all.
    columns: list[str] | None
    #: The first row, counted from 0.
    first: int
    #: Stop after this many rows, and before exceeding this many bytes.
    max_rows: int
    max_bytes: int


class Refusal(Exception):
    """The file cannot become documents."""


def read_rows(request: JsonObject, files: Sequence[int]) -> JsonObject:
    """Write rows. Return the file's columns and how many rows were written, or the problem."""
    typed = cast("ReadRequest", request)
    body, output = files
    try:
        with open_parquet(_mapped(body)) as file:
            return _written(file, typed, output)
    except READ_ERRORS as error:
        return {"problem": f"The Parquet file cannot be read: {error}."[:_MAX_DETAIL_CHARS]}
    except (Refusal, RecursionError) as error:
        return {"problem": str(error)[:_MAX_DETAIL_CHARS]}


def _mapped(body: int) -> pa.Buffer:
    if os.fstat(body).st_size == 0:
        return pa.py_buffer(b"")
    return pa.py_buffer(mmap.mmap(body, 0, prot=mmap.PROT_READ))


def _written(file: pq.ParquetFile, request: ReadRequest, output: int) -> JsonObject:
    schema = file.schema_arrow
    names = _checked_names(schema, request["columns"])
    rows = _Rows(0, is_last=True)
    if request["max_rows"]:
        lines = _lines(file, names, request["first"])
        rows = _write(lines, output, request["max_rows"], request["max_bytes"])
    columns = [{"name": f.name, "type": type_title(f.type)[:_MAX_TYPE_CHARS]} for f in schema]
    return {
        "columns": cast("list[object]", columns),
        "rows": file.metadata.num_rows,
        "written": rows.count,
        "is_last": rows.is_last,
    }


def _checked_names(schema: pa.Schema, chosen: Sequence[str] | None) -> list[str]:
    """Return the names of the columns to write, or raise `Refusal`."""
    names = list(schema.names)
    if len(names) > MAX_COLUMNS:
        raise Refusal(f"The file has more than {MAX_COLUMNS} columns.")
    if len(set(names)) < len(names):
        raise Refusal("Two columns have the same name.")
    if any(len(name) > _MAX_NAME_CHARS for name in names):
        raise Refusal(f"The name of a column has more than {_MAX_NAME_CHARS} characters.")
    selected = [name for name in names if chosen is None or name in chosen]
    for name in selected:
        try:
            column_texts(pa.nulls(0, schema.field(name).type))
        except UnsupportedColumn as error:
            detail = f"The column {name} has a type that documents do not have: {error}."
            raise Refusal(detail) from None
    return selected


def type_title(kind: pa.DataType) -> str:
    """Return the name of a type, without encodings."""
    if pa.types.is_dictionary(kind):
        return type_title(kind.value_type)
    if pa.types.is_struct(kind):
        return "struct<" + ", ".join(f"{f.name}: {type_title(f.type)}" for f in kind) + ">"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{type_title(kind.value_type)}>"
    return str(kind)


def _lines(file: pq.ParquetFile, names: Sequence[str], first: int) -> Iterator[bytes]:
    """Yield the line of each row from `first` on."""
    groups, skipped = _groups_from(file, first)
    if not groups:
        return
    remaining = first - skipped
    for batch in file.iter_batches(_batch_rows(file), row_groups=groups, columns=list(names)):
        if remaining < batch.num_rows:
            yield from _batch_lines(batch.slice(remaining), names)
        remaining = max(0, remaining - batch.num_rows)


def _groups_from(file: pq.ParquetFile, first: int) -> tuple[list[int], int]:
    """Return the row groups from the one that has the row `first`, and the rows before them."""
    before = 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if rows < 0 or before + rows > first:
            return list(range(group, file.num_row_groups)), before
        before += rows
    return [], before


def _batch_rows(file: pq.ParquetFile) -> int:
    """Return how many rows to decode at once: few if they are large."""
    groups = [file.metadata.row_group(group) for group in range(file.num_row_groups)]
    rows: int = sum(group.num_rows for group in groups)
    size: int = sum(group.total_byte_size for group in groups)
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES * max(rows, 1) // max(size, 1)))


def _batch_lines(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[bytes]:
    columns = [column_texts(batch.column(name)) for name in names]
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    flawed = {row for column in columns for row in column.problems}
    texts = [column.texts for column in columns]
    for row in range(batch.num_rows):
        if row in flawed:
            column = next(c for c, each_column in enumerate(columns) if row in each_column.problems)
            yield _problem(names[column], columns[column].problems[row])
            continue
        members = (
            f"{key}:{values[row]}"
            for key, values in zip(keys, texts, strict=True)
            if values[row] is not None
        )
        line = "".join(("{", ",".join(members), "}")).encode()
        if len(line) < MAX_LINE_BYTES:
            yield _ROW + line
        else:
            yield _problem("", f"The row has more than {MAX_LINE_BYTES} bytes.")


def _problem(column: str, detail: str) -> bytes:
    return _PROBLEM + json.dumps([column, detail[:_MAX_DETAIL_CHARS]]).encode()


@dataclass(frozen=True, slots=True)
class _Rows:
    """What was written."""

    count: int
    #: Whether the file has no more rows.
    is_last: bool


def _write(lines: Iterator[bytes], output: int, max_rows: int, max_bytes: int) -> _Rows:
    count = size = 0
    with os.fdopen(output, "wb") as file:
        for line in lines:
            if count == max_rows or (count and size + len(line) >= max_bytes):
                return _Rows(count, is_last=False)
            size += file.write(line + b"\n")
            count += 1
    return _Rows(count, is_last=True)
