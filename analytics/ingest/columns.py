"""Reads Arrow streams and Parquet files, each with one table and one operation.

A body may contain several Arrow streams in sequence, each with its table and operation in its
schema's metadata (`rillbase.table`, `rillbase.op`); defaults come from the URL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.ingest.expansion import small_batches
from analytics.ingest.operations import RowOperation, operations
from analytics.schema import AnalyticsTable
from foundation.errors import FieldProblem, InvalidParameter, InvalidUpload

_BATCH_ROWS = 131_072
#: The names of dictionary encodings in Parquet footers.
_DICTIONARIES = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowNotImplementedError,
    pa.ArrowIndexError,
    pa.ArrowKeyError,
    pa.ArrowTypeError,
    pa.ArrowSerializationError,
    UnicodeDecodeError,
    OSError,
)


@dataclass(frozen=True, slots=True)
class UploadTarget:
    """The table and the operation given in the URL of an upload."""

    table: str | None
    op: str | None


def read_arrow(
    body: pa.Buffer, tables: Mapping[str, AnalyticsTable], target: UploadTarget
) -> Iterator[tuple[AnalyticsTable, pa.RecordBatch]]:
    """Yield the operations of Arrow streams."""
    source = pa.BufferReader(body)
    while source.tell() < source.size():
        reader = _open_stream(source)
        table, op = _target(tables, target, reader.schema.metadata or {})
        _check_columns(table, op, reader.schema)
        while (batch := _next_batch(reader)) is not None:
            for piece in small_batches(batch):
                yield table, _operations(table, op, piece)


def read_parquet(
    body: pa.Buffer, tables: Mapping[str, AnalyticsTable], target: UploadTarget
) -> Iterator[tuple[AnalyticsTable, pa.RecordBatch]]:
    """Yield the operations of a Parquet file."""
    try:
        with pq.ParquetFile(pa.BufferReader(body)) as metadata_file:
            dictionary_columns = _dictionary_columns(metadata_file)
        with pq.ParquetFile(pa.BufferReader(body), read_dictionary=dictionary_columns) as file:
            table, op = _target(tables, target, file.schema_arrow.metadata or {})
            _check_columns(table, op, file.schema_arrow)
            for batch in file.iter_batches(_BATCH_ROWS):
                for piece in small_batches(batch):
                    yield table, _operations(table, op, piece)
    except _ERRORS as error:
        raise InvalidUpload(f"The Parquet file cannot be read: {error}.") from None


def _dictionary_columns(file: pq.ParquetFile) -> list[str]:
    """Return the columns whose values are dictionary indexes.

    They are read without expanding them: a short file can refer to a long text many times.
    """
    if file.metadata.num_row_groups == 0:
        return []
    group = file.metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return [c.path_in_schema for c in chunks if not _DICTIONARIES.isdisjoint(c.encodings)]


def _open_stream(source: pa.BufferReader) -> pa.ipc.RecordBatchStreamReader:
    try:
        return pa.ipc.open_stream(source)
    except _ERRORS as error:
        raise InvalidUpload(f"The Arrow stream cannot be read: {error}.") from None


def _next_batch(reader: pa.ipc.RecordBatchStreamReader) -> pa.RecordBatch | None:
    try:
        batch = reader.read_next_batch()
        batch.validate(full=True)
    except StopIteration:
        return None
    except _ERRORS as error:
        raise InvalidUpload(f"The Arrow stream is damaged: {error}.") from None
    return batch


def _target(
    tables: Mapping[str, AnalyticsTable], target: UploadTarget, metadata: Mapping[bytes, bytes]
) -> tuple[AnalyticsTable, RowOperation]:
    table = metadata.get(b"rillbase.table", (target.table or "").encode()).decode(
        "utf-8", "replace"
    )
    op = metadata.get(b"rillbase.op", (target.op or RowOperation.INSERT).encode()).decode(
        "utf-8", "replace"
    )
    if table not in tables:
        detail = (
            f"The table {table[:63]!r} does not exist." if table else "Specify the table: ?table=…"
        )
        raise InvalidParameter(errors=[FieldProblem("table", "invalid", detail)])
    if op not in set(RowOperation):
        raise InvalidParameter(
            errors=[FieldProblem("op", "invalid", f"One of {', '.join(RowOperation)}.")]
        )
    return tables[table], RowOperation(op)


def _check_columns(table: AnalyticsTable, op: RowOperation, schema: pa.Schema) -> None:
    """Raise `InvalidUpload` for invalid columns, before any value is decoded."""
    if len(set(schema.names)) < len(schema.names):
        raise InvalidUpload("Two columns have the same name.")
    columns = {field.name: pa.nulls(0, field.type) for field in schema}
    operations(table, op, columns, 0)


def _operations(table: AnalyticsTable, op: RowOperation, batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return operations(table, op, columns, batch.num_rows)
