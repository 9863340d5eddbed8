"""NDJSON: lines that name their tables, `{"orders": {"id": 1}, "op": "update"}`.

A line has one table, an operation (default `insert`), and for an update, in `null`, the names of
columns to set to null: an omitted column is left unchanged. Lines are parsed by Arrow's JSON reader
with the tables' types, one block at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from analytics.ingest.json_errors import line_problems
from analytics.ingest.line_errors import line_pieces, reject_records
from analytics.ingest.operations import RowOperation, operations, refused, with_masks
from analytics.schema import AnalyticsTable
from foundation.errors import InvalidUpload

#: The largest block, which must hold the longest line.
MAX_BLOCK_BYTES = 16 * 1024 * 1024
_MIN_BLOCK_BYTES = 256 * 1024
#: Approximate size of a block's columns if its lines have the usual minimum length.
_COLUMNS_BYTES, _USUAL_LINE_BYTES = 64 * 1024 * 1024, 16
_VALUE_BYTES = 8
_LINE_END, _TAIL_BYTES = ord("\n"), 4096
#: Only smaller bodies are checked for being blank.
_SMALL_BYTES = 1024 * 1024
#: Bytes searched at once: few enough not to block other threads for long.
_LOOKED_AT_BYTES = 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
#: The first byte of a line that is not an object. Arrow also takes carriage returns for line
#: breaks.
_NO_OBJECT = re.compile(rb"[\r\n][ \t\r\n]*+[^{ \t\r\n]")


def read_lines(
    body: pa.Buffer, tables: Mapping[str, AnalyticsTable]
) -> Iterator[tuple[AnalyticsTable, pa.RecordBatch]]:
    """Yield operations in the order of their lines, within each table."""
    try:
        yield from _read_lines(body, tables)
    except InvalidUpload:
        reject_records(
            line_pieces(body),
            lambda rows: read_all(_read_lines(pa.py_buffer(rows), tables)),
            partial(line_problems, tables),
        )
        raise


def read_all(batches: Iterable[object]) -> None:
    """Read rows only to find errors."""
    for _ in batches:
        pass


def _read_lines(
    body: pa.Buffer, tables: Mapping[str, AnalyticsTable]
) -> Iterator[tuple[AnalyticsTable, pa.RecordBatch]]:
    for block in json_blocks(body, _lines_schema(tables), tables, others="error"):
        yield from _read_block(block, tables)


def json_blocks(
    body: pa.Buffer,
    schema: pa.Schema,
    tables: Mapping[str, AnalyticsTable],
    *,
    others: Literal["error", "ignore"],
) -> Iterator[pa.RecordBatch]:
    """Yield lines as columns of this schema; `others` is what happens to other members."""
    _require_objects(body)
    try:
        with pa.json.open_json(
            pa.BufferReader(body),
            read_options=pa.json.ReadOptions(block_size=block_bytes(body, tables)),
            parse_options=pa.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior=others
            ),
        ) as blocks:
            yield from blocks
    except pa.ArrowInvalid as error:
        if not _is_blank(body):
            raise InvalidUpload(f"A line cannot be read: {error}.") from None


def block_bytes(body: pa.Buffer, tables: Mapping[str, AnalyticsTable]) -> int:
    """Return the block size.

    Each line has an entry in every column of every table, so the wider the tables are, the smaller
    the blocks. Every block must contain the end of a line, which the reader requires.
    """
    width = _VALUE_BYTES * sum(len(table.columns) for table in tables.values())
    desired = _COLUMNS_BYTES * _USUAL_LINE_BYTES // max(width, 1)
    size = min(max(desired, _MIN_BLOCK_BYTES), MAX_BLOCK_BYTES)
    while size < MAX_BLOCK_BYTES and not _every_block_ends_a_line(body, size):
        size = min(size * 2, MAX_BLOCK_BYTES)
    return size


def _every_block_ends_a_line(body: pa.Buffer, size: int) -> bool:
    text = np.frombuffer(body, dtype=np.uint8)
    return all(_ends_a_line(text[start : start + size]) for start in range(0, len(text), size))


def _ends_a_line(block: np.ndarray) -> bool:
    # Most blocks contain a line end near their own end.
    return bool(np.any(block[-_TAIL_BYTES:] == _LINE_END) or np.any(block == _LINE_END))


def _require_objects(body: pa.Buffer) -> None:
    """Raise `InvalidUpload` for a line that is not an object.

    Arrow's reader aborts the whole process on a block that begins with `null`.
    """
    # A line begins here: check what follows as if after a line break.
    before = b"\n"
    for start in range(0, body.size, _LOOKED_AT_BYTES):
        text = body.slice(start, min(_LOOKED_AT_BYTES, body.size - start)).to_pybytes()
        if start == 0:
            text = text.removeprefix(_BYTE_ORDER_MARK)
        if _NO_OBJECT.search(before + text):
            raise InvalidUpload("Each line must be a JSON object.")
        blank = text[len(text.rstrip(_BLANK)) :]
        continues = before and len(blank) == len(text)
        before = b"\n" if continues or b"\n" in blank or b"\r" in blank else b""


def _is_blank(body: pa.Buffer) -> bool:
    return body.size < _SMALL_BYTES and not body.to_pybytes().strip()


def _lines_schema(tables: Mapping[str, AnalyticsTable]) -> pa.Schema:
    fields = [pa.field(name, _struct(table)) for name, table in tables.items()]
    more = [pa.field("op", pa.string()), pa.field("null", pa.list_(pa.string()))]
    return pa.schema([*fields, *more])


def _struct(table: AnalyticsTable) -> pa.StructType:
    """Return a table's columns; dates as text, since this reader does not parse them."""
    return pa.struct(
        [(n, pa.string() if pa.types.is_date(kind) else kind) for n, kind in table.types.items()]
    )


def _read_block(
    block: pa.RecordBatch, tables: Mapping[str, AnalyticsTable]
) -> Iterator[tuple[AnalyticsTable, pa.RecordBatch]]:
    is_present = {name: block[name].is_valid() for name in tables}
    counts = sum(valid.to_numpy(zero_copy_only=False).astype(int) for valid in is_present.values())
    if not np.all(counts == 1):
        raise InvalidUpload('Each line must name one table, as in {"table": {…row…}}.')
    ops = pc.fill_null(block["op"], RowOperation.INSERT.value)
    unknown = [name for name in pc.unique(ops).to_pylist() if name not in set(RowOperation)]
    if unknown:
        raise InvalidUpload(
            f"`op` must be one of {', '.join(RowOperation)}, not {unknown[0][:40]!r}."
        )
    for name, table in tables.items():
        if pc.any(is_present[name]).as_py():
            table_rows = block.filter(is_present[name])
            yield (
                table,
                _operations(
                    table, table_rows[name], ops.filter(is_present[name]), table_rows["null"]
                ),
            )


def _operations(
    table: AnalyticsTable, rows: pa.StructArray, ops: pa.Array, nulled: pa.ListArray
) -> pa.RecordBatch:
    columns = dict(zip(table.columns, rows.flatten(), strict=True))
    return line_operations(table, columns, ops, nulled)


def line_operations(
    table: AnalyticsTable, sent: Mapping[str, pa.Array], ops: pa.Array, nulled: pa.ListArray
) -> pa.RecordBatch:
    """Return the operations of lines, from all columns as they were sent."""
    columns = dict(sent)
    for name, kind in table.shown.items():
        if kind == "date":
            columns[name] = _days(table, name, columns[name])
    if (
        nulled.null_count == len(nulled)
        and pc.all(pc.equal(ops, RowOperation.INSERT.value)).as_py()
    ):
        return operations(table, RowOperation.INSERT, columns, len(ops))
    return with_masks(table, columns, _masks(table, columns, ops, nulled))


def _days(table: AnalyticsTable, name: str, texts: pa.Array) -> pa.Array:
    try:
        return texts.cast(pa.date32())
    except pa.ArrowInvalid:
        raise refused(table, name, "wrong_type", "A day must be text such as 2026-11-21.") from None


def _masks(
    table: AnalyticsTable, columns: Mapping[str, pa.Array], ops: pa.Array, nulled: pa.ListArray
) -> pa.Array:
    set_here = np.zeros(len(ops), dtype=np.int64)
    clears = _nulled(table, ops, nulled)
    for name, bit in table.bits.items():
        sent = columns[name].is_valid().to_numpy(zero_copy_only=False)
        if np.any(sent & clears[name]):
            raise refused(
                table, name, "conflict", "The column has a value and is also listed in `null`."
            )
        set_here |= np.where(sent | clears[name], bit, 0)
    is_delete = pc.equal(ops, RowOperation.DELETE.value).to_numpy(zero_copy_only=False)
    if np.any(is_delete & (set_here != 0)):
        raise InvalidUpload(f"{table.name}: a delete may only have the key's columns.")
    is_insert = pc.equal(ops, RowOperation.INSERT.value).to_numpy(zero_copy_only=False)
    masks = np.where(is_insert, table.inserted, np.where(is_delete, table.deleted, set_here))
    return pa.array(masks, pa.int64())


def _nulled(table: AnalyticsTable, ops: pa.Array, nulled: pa.ListArray) -> dict[str, np.ndarray]:
    """Return for each column which lines list it in `null`."""
    lines = np.asarray(pc.list_parent_indices(nulled))
    names = pc.list_flatten(nulled)
    unknown = [n for n in pc.unique(names).to_pylist() if n not in table.bits]
    if unknown:
        raise InvalidUpload(f"{table.name} has no column {str(unknown[0])[:63]!r} to set to null.")
    nulls = {}
    for name in table.bits:
        nulls[name] = np.zeros(len(nulled), dtype=bool)
        nulls[name][lines[pc.equal(names, name).to_numpy(zero_copy_only=False)]] = True
    return nulls
