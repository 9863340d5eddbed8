"""Arrow streams and Parquet files. Each has one table and one operation for all of its rows.

Several Arrow streams may follow one another in a body, each with its own table and operation in its
schema's metadata (`rillbase.table`, `rillbase.op`); what a schema does not say the address does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.ingest.operations import Op, operations
from analytics.schema import Table
from foundation.errors import FieldProblem, InvalidParameter, InvalidUpload

_BATCH_ROWS = 131_072
_DAMAGED = (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError)


@dataclass(frozen=True, slots=True)
class Named:
    """What the address says of the rows."""

    table: str | None
    op: str | None


def read_arrow(
    path: Path, tables: Mapping[str, Table], named: Named
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """Yield the operations of Arrow streams."""
    with pa.OSFile(str(path)) as source:
        while source.tell() < source.size():
            reader = _opened(source)
            table, op = _meant(tables, named, reader.schema.metadata or {})
            _check_once(reader.schema)
            while (batch := _next_batch(reader)) is not None:
                yield table, _operations(table, op, batch)


def read_parquet(
    path: Path, tables: Mapping[str, Table], named: Named
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """Yield the operations of a Parquet file."""
    try:
        with pq.ParquetFile(path) as file:
            table, op = _meant(tables, named, file.schema_arrow.metadata or {})
            _check_once(file.schema_arrow)
            for batch in file.iter_batches(_BATCH_ROWS):
                yield table, _operations(table, op, batch)
    except _DAMAGED as damaged:
        raise InvalidUpload(f"The Parquet file cannot be read: {damaged}.") from None


def _opened(source: pa.NativeFile) -> pa.ipc.RecordBatchStreamReader:
    try:
        return pa.ipc.open_stream(source)
    except _DAMAGED as damaged:
        raise InvalidUpload(f"The Arrow stream cannot be read: {damaged}.") from None


def _next_batch(reader: pa.ipc.RecordBatchStreamReader) -> pa.RecordBatch | None:
    try:
        batch = reader.read_next_batch()
        batch.validate(full=True)
    except StopIteration:
        return None
    except _DAMAGED as damaged:
        raise InvalidUpload(f"The Arrow stream is damaged: {damaged}.") from None
    return batch


def _meant(
    tables: Mapping[str, Table], named: Named, metadata: Mapping[bytes, bytes]
) -> tuple[Table, Op]:
    table = metadata.get(b"rillbase.table", (named.table or "").encode()).decode("utf-8", "replace")
    op = metadata.get(b"rillbase.op", (named.op or Op.INSERT).encode()).decode("utf-8", "replace")
    if table not in tables:
        detail = f"There is no table {table[:63]!r}." if table else "Say which table: ?table=…"
        raise InvalidParameter(errors=[FieldProblem("table", "invalid", detail)])
    if op not in set(Op):
        raise InvalidParameter(errors=[FieldProblem("op", "invalid", f"One of {', '.join(Op)}.")])
    return tables[table], Op(op)


def _check_once(schema: pa.Schema) -> None:
    if len(set(schema.names)) < len(schema.names):
        raise InvalidUpload("Two columns have the same name.")


def _operations(table: Table, op: Op, batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return operations(table, op, columns, batch.num_rows)
