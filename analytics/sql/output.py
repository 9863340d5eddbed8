"""Writes a result in the format that the caller wants, batch by batch."""

from __future__ import annotations

import io
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from orjson import dumps as to_json

from analytics.media_types import ARROW, CSV, JSON, NDJSON, PARQUET
from analytics.sql.values import Converter, converter
from documents.transfer.output import Output, OutputFormat
from foundation.errors import FieldProblem, InvalidSql
from foundation.json_types import JsonObject, JsonValue
from foundation.sandbox import messages
from rillbase_native import Value

#: Rows of a batch: few where each becomes text, so that the first ones arrive early.
TEXT_ROWS, COLUMN_ROWS = 2_048, 65_536
_PART_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result, with its type in DuckDB."""

    name: str
    kind: str


class ResultWriter(Protocol):
    """Writes one result. All formats but JSON have no end mark of their own."""

    def write(self, batch: pa.RecordBatch) -> None: ...

    def finish(self, *, truncated: bool) -> None: ...


class StreamSink(io.RawIOBase):
    """A file whose content goes to the server in parts, once it is open."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()
        self._is_open = False

    def open(self) -> None:
        """Send what has been written so far, and all that follows."""
        self._is_open = True
        self.flush()

    def writable(self) -> bool:
        return True

    def write(self, part: object) -> int:
        with memoryview(part) as view:  # type: ignore[arg-type]
            self._buffer += view.cast("B")
            written = view.nbytes
        if len(self._buffer) >= _PART_BYTES:
            self.flush()
        return written

    def flush(self) -> None:
        if self._buffer and self._is_open:
            messages.send_part(self._connection, bytes(self._buffer))
            self._buffer.clear()


def writer_for(
    media_type: str,
    sink: StreamSink,
    schema: pa.Schema,
    columns: Sequence[ResultColumn],
    head: JsonObject,
) -> ResultWriter:
    """Return a writer of a format. `head` describes the state of the result."""
    metadata = {f"rillbase.{name}".encode(): to_json(value) for name, value in head.items()}
    if media_type == ARROW:
        return _Arrow(sink, schema.with_metadata(metadata))
    if media_type == PARQUET:
        return _Parquet(sink, schema.with_metadata(metadata))
    rows = _JsonRows(schema, columns)
    if media_type == CSV:
        return _Csv(sink, rows)
    return _Lines(sink, rows) if media_type == NDJSON else _Json(sink, rows, columns, head)


def rows_per_batch(media_type: str) -> int:
    return COLUMN_ROWS if media_type in (ARROW, PARQUET) else TEXT_ROWS


class _JsonRows:
    """Converts batches to rows of JSON."""

    def __init__(self, schema: pa.Schema, columns: Sequence[ResultColumn]) -> None:
        self.names = [column.name for column in columns]
        self._converters: list[Converter | None] = [
            converter(field.type, column.kind)
            for field, column in zip(schema, columns, strict=True)
        ]

    def of(self, batch: pa.RecordBatch) -> list[JsonObject]:
        columns = [
            values if convert is None else list(map(convert, values))
            for values, convert in zip(
                (column.to_pylist() for column in batch.columns), self._converters, strict=True
            )
        ]
        return [dict(zip(self.names, values, strict=True)) for values in zip(*columns, strict=True)]


class _Arrow:
    def __init__(self, sink: StreamSink, schema: pa.Schema) -> None:
        self._sink = sink
        self._writer = pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def finish(self, *, truncated: bool) -> None:
        self._writer.close()
        self._sink.flush()


class _Parquet:
    def __init__(self, sink: StreamSink, schema: pa.Schema) -> None:
        self._sink = sink
        for field in schema:
            if pa.types.is_interval(field.type):
                detail = f"Parquet has no intervals: cast the column {field.name[:63]!r}."
                raise InvalidSql(detail, errors=[FieldProblem("/sql", "type", detail)])
        file = pa.PythonFile(sink, mode="w")
        self._writer = pq.ParquetWriter(file, schema, compression="zstd", compression_level=1)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def finish(self, *, truncated: bool) -> None:
        self._writer.close()
        self._sink.flush()


class _Lines:
    def __init__(self, sink: StreamSink, rows: _JsonRows) -> None:
        self._sink, self._rows = sink, rows

    def write(self, batch: pa.RecordBatch) -> None:
        self._sink.write(b"".join(to_json(row) + b"\n" for row in self._rows.of(batch)))

    def finish(self, *, truncated: bool) -> None:
        self._sink.flush()


class _Csv:
    def __init__(self, sink: StreamSink, rows: _JsonRows) -> None:
        self._sink, self._rows = sink, rows
        self._writer = Output(OutputFormat.CSV).csv_writer(rows.names)
        sink.write(self._writer.header())

    def write(self, batch: pa.RecordBatch) -> None:
        documents = (Value.parse(to_json(row)) for row in self._rows.of(batch))
        self._sink.write(self._writer.rows([document.bson() for document in documents]))

    def finish(self, *, truncated: bool) -> None:
        self._sink.flush()


class _Json:
    """One object: what describes the result, its rows, and whether there are more."""

    def __init__(
        self,
        sink: StreamSink,
        rows: _JsonRows,
        columns: Sequence[ResultColumn],
        head: JsonObject,
    ) -> None:
        self._sink, self._rows = sink, rows
        self._count = 0
        described: list[JsonValue] = [{"name": one.name, "type": one.kind} for one in columns]
        text = to_json({**head, "columns": described})
        sink.write(text[:-1] + b',"rows":[')

    def write(self, batch: pa.RecordBatch) -> None:
        rows = self._rows.of(batch)
        if rows:
            text = to_json(rows)
            self._sink.write((b"," if self._count else b"") + text[1:-1])
            self._count += len(rows)

    def finish(self, *, truncated: bool) -> None:
        self._sink.write(b'],"truncated":' + to_json(truncated) + b"}")
        self._sink.flush()


MEDIA_TYPES = (JSON, NDJSON, CSV, ARROW, PARQUET)
