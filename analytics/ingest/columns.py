"""Reads Arrow streams and Parquet files, each with one table and one operation.

A body may contain several Arrow streams in sequence, each with its table and operation in its
schema's metadata (`rillbase.table`, `rillbase.op`); defaults come from the URL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from analytics.ingest.expansion import small_batches
from analytics.ingest.file_columns import UploadTarget, mapped, table_and_op
from analytics.ingest.operations import RowOperation, operations
from analytics.schema import AnalyticsTable
from documents.transfer.parquet.parquet_file import READ_ERRORS, open_parquet
from foundation.errors import InvalidUpload

_BATCH_ROWS = 131_072


def read_arrow(
    body: pa.Buffer, tables: Mapping[str, AnalyticsTable], target: UploadTarget
) -> Iterator[tuple[AnalyticsTable, pa.RecordBatch]]:
    """Yield the operations of Arrow streams."""
    source = pa.BufferReader(body)
    while source.tell() < source.size():
        reader = _open_stream(source)
        table, op = table_and_op(tables, target, reader.schema.metadata or {})
        _check_columns(table, op, reader.schema)
        while (batch := _next_batch(reader)) is not None:
            for piece in small_batches(batch):
                yield table, _operations(table, op, piece)


def read_parquet(
    body: pa.Buffer, tables: Mapping[str, AnalyticsTable], target: UploadTarget
) -> Iterator[tuple[AnalyticsTable, pa.RecordBatch]]:
    """Yield the operations of a Parquet file."""
    try:
        with open_parquet(body) as file:
            table, op = table_and_op(tables, target, file.schema_arrow.metadata or {})
            columns = mapped(target.form, file.schema_arrow.names)
            sources = [column.source for column in columns]
            targets = [column.target for column in columns]
            _check_columns(table, op, _renamed(file.schema_arrow, sources, targets))
            for batch in file.iter_batches(_BATCH_ROWS, columns=sources):
                for piece in small_batches(batch.select(sources).rename_columns(targets)):
                    yield table, _operations(table, op, piece)
    except READ_ERRORS as error:
        raise InvalidUpload(f"The Parquet file cannot be read: {error}.") from None


def _renamed(schema: pa.Schema, sources: Sequence[str], targets: Sequence[str]) -> pa.Schema:
    fields = zip(sources, targets, strict=True)
    return pa.schema([schema.field(source).with_name(target) for source, target in fields])


def _open_stream(source: pa.BufferReader) -> pa.ipc.RecordBatchStreamReader:
    try:
        return pa.ipc.open_stream(source)
    except READ_ERRORS as error:
        raise InvalidUpload(f"The Arrow stream cannot be read: {error}.") from None


def _next_batch(reader: pa.ipc.RecordBatchStreamReader) -> pa.RecordBatch | None:
    try:
        batch = reader.read_next_batch()
        batch.validate(full=True)
    except StopIteration:
        return None
    except READ_ERRORS as error:
        raise InvalidUpload(f"The Arrow stream is damaged: {error}.") from None
    return batch


def _check_columns(table: AnalyticsTable, op: RowOperation, schema: pa.Schema) -> None:
    """Raise `InvalidUpload` for invalid columns, before any value is decoded."""
    if len(set(schema.names)) < len(schema.names):
        raise InvalidUpload("Two columns have the same name.")
    columns = {field.name: pa.nulls(0, field.type) for field in schema}
    operations(table, op, columns, 0)


def _operations(table: AnalyticsTable, op: RowOperation, batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return operations(table, op, columns, batch.num_rows)
