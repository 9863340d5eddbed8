"""Segments, as uploaded: Arrow files, one per part of an upload and table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from analytics.rows.file_store import StoredPath, open_file
from analytics.rows.segment_writer import SegmentWriter
from analytics.schema import OP, AnalyticsTable


def write_segment(path: Path, table: AnalyticsTable, rows: pa.Table) -> None:
    writer = SegmentWriter(pa.OSFile(str(path), "wb"), table)
    try:
        for batch in rows.to_batches():
            writer.write(batch)
    finally:
        writer.close()


def read_segment(path: StoredPath, table: AnalyticsTable, columns: Sequence[str]) -> pa.Table:
    """Return columns and masks. A column newer than the file is null."""
    with open_file(path) as source:
        with pa.ipc.open_file(source) as file:
            names = file.schema.names
        fields = [index for index, name in enumerate(names) if name in columns or name == OP]
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        with pa.ipc.open_file(source, options=options) as reader:
            return with_columns(reader.read_all(), table, columns)


def with_columns(rows: pa.Table, table: AnalyticsTable, columns: Sequence[str]) -> pa.Table:
    """Return rows with exactly these columns and the masks, in this order."""
    fields = [*(table.stored.field(name) for name in columns), table.stored.field(OP)]
    arrays = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in fields
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def with_mask(table: AnalyticsTable, rows: pa.Table, mask: int) -> pa.Table:
    """Return rows as operations that all have one mask."""
    masks = pa.repeat(pa.scalar(mask, pa.int64()), rows.num_rows)
    schema = pa.schema([table.stored.field(name) for name in (*rows.column_names, OP)])
    return pa.Table.from_arrays([*rows.columns, masks], schema=schema)
