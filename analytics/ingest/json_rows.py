"""NDJSON and JSON files with rows of one table, whose columns may have other names there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import pyarrow as pa

from analytics.ingest.file_columns import TableBatch, UploadTarget, mapped, table_and_op
from analytics.ingest.item_pieces import item_pieces
from analytics.ingest.json_errors import UNKNOWN_COLUMN, RowMembers, row_problems
from analytics.ingest.line_errors import FilePiece, line_pieces, reject_records
from analytics.ingest.lines import MAX_BLOCK_BYTES, json_blocks, line_operations, read_all
from analytics.ingest.operations import RowOperation, refused
from analytics.schema import AnalyticsTable
from documents.transfer.records import readable
from foundation.errors import InvalidBody, InvalidUpload
from rillbase_native import JsonItemReader

_PART_BYTES = 1024 * 1024
#: Bytes of documents whose columns are in memory at once.
_CHUNK_BYTES = 16 * 1024 * 1024


def read_rows(
    body: pa.Buffer, tables: Mapping[str, AnalyticsTable], target: UploadTarget
) -> Iterator[TableBatch]:
    """Yield the operations of lines, each a row of the table in the URL."""
    rows = _RowUpload.of(tables, target)
    try:
        yield from rows.batches(body)
    except InvalidUpload:
        rows.reject(line_pieces(body))
        raise


def read_items(
    body: pa.Buffer, tables: Mapping[str, AnalyticsTable], target: UploadTarget
) -> Iterator[TableBatch]:
    """Yield the operations of an array of rows, or of one row."""
    rows = _RowUpload.of(tables, target)
    try:
        for chunk in _chunks(body):
            yield from rows.batches(pa.py_buffer(chunk))
    except (InvalidBody, InvalidUpload):
        rows.reject(item_pieces(body))
        raise


def _chunks(body: pa.Buffer) -> Iterator[bytes]:
    """Yield the rows of an array, one per line."""
    reader, chunk = JsonItemReader(MAX_BLOCK_BYTES, one_line=True), bytearray()
    for start in range(0, body.size, _PART_BYTES):
        part = body.slice(start, min(_PART_BYTES, body.size - start)).to_pybytes()
        for _, _, item in readable(partial(reader.push, part)):
            chunk += item
            chunk += b"\n"
        if len(chunk) >= _CHUNK_BYTES:
            yield bytes(chunk)
            chunk = bytearray()
    readable(reader.finish)
    yield bytes(chunk)


@dataclass(frozen=True, slots=True)
class _RowUpload:
    """How the rows of a file become operations on one table."""

    op: RowOperation
    members: RowMembers

    @classmethod
    def of(cls, tables: Mapping[str, AnalyticsTable], target: UploadTarget) -> _RowUpload:
        table, op = table_and_op(tables, target, {})
        columns = mapped(target.form, _names(table, target))
        sources = {column.source: column.target for column in columns}
        for name in sources.values():
            if name not in table.columns:
                raise refused(table, name, "unknown_column", UNKNOWN_COLUMN)
        return cls(op, RowMembers(table, sources, target.form.columns is not None))

    def batches(self, body: pa.Buffer) -> Iterator[TableBatch]:
        table, sources = self.members.table, self.members.sources
        schema = pa.schema([(source, _sent(table, name)) for source, name in sources.items()])
        others: Literal["error", "ignore"] = "ignore" if self.members.ignores_others else "error"
        for block in json_blocks(body, schema, {table.name: table}, others=others):
            yield table, _operations(table, self.op, block, sources)

    def reject(self, pieces: Iterable[FilePiece]) -> None:
        """Raise `InvalidUpload` with the places of invalid rows."""
        reject_records(
            pieces,
            lambda rows: read_all(self.batches(pa.py_buffer(rows))),
            partial(row_problems, self.members),
        )


def _names(table: AnalyticsTable, target: UploadTarget) -> list[str]:
    """Return the members that rows may have: those that the caller names, or all columns."""
    columns = target.form.columns
    return list(table.columns) if columns is None else [column.source for column in columns]


def _sent(table: AnalyticsTable, name: str) -> pa.DataType:
    """Return the type of a column's JSON values; days are texts."""
    kind = table.types[name]
    return pa.string() if pa.types.is_date(kind) else kind


def _operations(
    table: AnalyticsTable, op: RowOperation, block: pa.RecordBatch, sources: Mapping[str, str]
) -> pa.RecordBatch:
    rows = block.num_rows
    columns = {name: pa.nulls(rows, _sent(table, name)) for name in table.columns}
    columns |= {name: block[source] for source, name in sources.items()}
    ops = pa.repeat(pa.scalar(op.value), rows)
    return line_operations(table, columns, ops, pa.nulls(rows, pa.list_(pa.string())))
