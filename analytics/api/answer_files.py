"""Results of queries as files: Arrow, Parquet, CSV and NDJSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.api.dataset_access import in_thread
from analytics.media_types import ARROW, CSV, NDJSON, PARQUET
from analytics.query.literals import plain
from data_plane.http import CallResponse
from documents.transfer.output import Output, OutputFormat
from foundation.api.rendering import to_json
from foundation.json_types import JsonObject
from rillbase_native import Value

#: Rows that are written at once.
_BATCH_ROWS = 5_000


def plain_rows(rows: pa.Table) -> list[JsonObject]:
    """Return rows as JSON."""
    columns = [
        list(map(plain(field.type), column.to_pylist()))
        for field, column in zip(rows.schema, rows.columns, strict=True)
    ]
    names = rows.column_names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def answer_file(media_type: str, name: str, rows: pa.Table) -> CallResponse:
    """Respond with rows as a file."""
    return ANSWER_FILES[media_type](name, rows)


def _arrow(_: str, rows: pa.Table) -> CallResponse:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return CallResponse(200, bytes(sink.getvalue()), media_type=ARROW)


def _parquet(name: str, rows: pa.Table) -> CallResponse:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    headers = {"Content-Disposition": f'attachment; filename="{name}.parquet"'}
    return CallResponse(200, bytes(sink.getvalue()), headers, media_type=PARQUET)


def _csv(name: str, rows: pa.Table) -> CallResponse:
    output = Output(OutputFormat.CSV)
    writer = output.csv_writer(rows.column_names)

    def text(batch: pa.Table) -> bytes:
        documents = (Value.parse(to_json(row)) for row in plain_rows(batch))
        return writer.rows([document.bson() for document in documents])

    body = _in_batches(rows, text, writer.header())
    return CallResponse(200, body, output.headers(name), media_type=output.media_type)


def _lines(name: str, rows: pa.Table) -> CallResponse:
    output = Output(OutputFormat.NDJSON)

    def text(batch: pa.Table) -> bytes:
        return b"".join(to_json(row) + b"\n" for row in plain_rows(batch))

    body = _in_batches(rows, text, b"")
    return CallResponse(200, body, output.headers(name), media_type=output.media_type)


async def _in_batches(
    rows: pa.Table, text: Callable[[pa.Table], bytes], start: bytes
) -> AsyncIterator[bytes]:
    """Yield the text of rows, batch by batch; only one is in memory at a time."""
    if start:
        yield start
    for first in range(0, rows.num_rows, _BATCH_ROWS):
        batch = rows.slice(first, _BATCH_ROWS)
        yield await in_thread(lambda batch=batch: text(batch))  # type: ignore[misc]


ANSWER_FILES: Mapping[str, Callable[[str, pa.Table], CallResponse]] = {
    ARROW: _arrow,
    PARQUET: _parquet,
    CSV: _csv,
    NDJSON: _lines,
}
