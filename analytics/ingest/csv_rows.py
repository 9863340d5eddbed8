"""CSV files with rows of one table. They are parsed in Rust, by the same parser as imports."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa

from analytics.ingest.file_columns import (
    TableBatch,
    UploadTarget,
    mapped,
    table_and_op,
)
from analytics.ingest.line_errors import MAX_PROBLEMS, LineProblem, mismatch, reject_lines
from analytics.ingest.operations import RowOperation, operations, refused
from analytics.schema import TYPES, AnalyticsTable
from documents.transfer.formats import FileFormat, unique_names
from documents.transfer.records import readable
from rillbase_native import CsvReader, CsvRecords

#: Bytes whose columns are in memory at once.
_BLOCK_BYTES = 4 * 1024 * 1024


def read_csv(
    body: pa.Buffer, tables: Mapping[str, AnalyticsTable], target: UploadTarget
) -> Iterator[TableBatch]:
    """Yield the operations of a CSV file."""
    table, op = table_and_op(tables, target, {})
    rows: _CsvRows | None = None
    for block in _blocks(body, target.form):
        first = 0
        if rows is None:
            rows = _CsvRows(table, op, block, target.form)
            first = rows.first
        yield table, rows.operations(block, first)


def _blocks(body: pa.Buffer, form: FileFormat) -> Iterator[CsvRecords]:
    reader = CsvReader(delimiter=form.delimiter)
    for start in range(0, body.size, _BLOCK_BYTES):
        part = body.slice(start, min(_BLOCK_BYTES, body.size - start)).to_pybytes()
        block = readable(partial(reader.push, part))
        if len(block):
            yield block
    block = readable(reader.finish)
    if len(block):
        yield block


class _CsvRows:
    """The rows of a file whose columns are known."""

    def __init__(
        self, table: AnalyticsTable, op: RowOperation, block: CsvRecords, form: FileFormat
    ) -> None:
        if (problem := block.problem(0)) is not None:
            reject_lines([self._record_problem(table, block.line(0), problem)])
        header = block.fields(0)
        self.first = 1 if form.has_header else 0
        names = unique_names(header if form.has_header else [None] * len(header))
        columns = mapped(form, names)
        self._table, self._op = table, op
        self._names = names
        self._indexes = {column.target: names.index(column.source) for column in columns}
        # Unknown and missing columns are found before any value is read.
        operations(table, op, self._columns(block, len(block), []), 0)

    @staticmethod
    def _record_problem(table: AnalyticsTable, line: int, detail: str) -> LineProblem:
        return LineProblem(line, None, detail, pointer=f"/{table.name}")

    def operations(self, block: CsvRecords, first: int) -> pa.RecordBatch:
        """Return the operations of a block's records from `first` on."""
        problems = [
            self._record_problem(self._table, line, detail)
            for line, detail in block.problems(MAX_PROBLEMS)
        ]
        columns = self._columns(block, first, problems)
        reject_lines(problems)
        rows = len(next(iter(columns.values()))) if columns else 0
        return operations(self._table, self._op, columns, rows)

    def _columns(
        self, block: CsvRecords, first: int, problems: list[LineProblem]
    ) -> dict[str, pa.Array]:
        names = dict.fromkeys(target.split(".")[0] for target in self._indexes)
        return {name: self._column(block, first, name, problems) for name in names}

    def _column(
        self, block: CsvRecords, first: int, name: str, problems: list[LineProblem]
    ) -> pa.Array:
        """Return a column, of structs for a composite key, whose parts are `name.part`."""
        table = self._table
        if name in table.parts:
            parts = [
                self._values(block, first, f"{name}.{part}", str(kind), problems)
                for part, kind in table.parts[name].items()
            ]
            is_null = [False] * (len(parts[0]) if parts else 0)
            return pa.StructArray.from_arrays(
                parts, names=list(table.parts[name]), mask=pa.array(is_null, pa.bool_())
            )
        kind = table.shown.get(name)
        if kind is None:
            raise refused(table, name, "unknown_column", "The table has no such column.")
        return self._values(block, first, name, kind, problems)

    def _values(
        self,
        block: CsvRecords,
        first: int,
        target: str,
        kind: str,
        problems: list[LineProblem],
    ) -> pa.Array:
        index = self._indexes.get(target)
        if index is None:
            detail = "Map a column to each part of the key, such as key.part."
            raise refused(self._table, target, "no_key", detail)
        rows, validity, ends, values, wrong = block.column(
            first, index, kind, max_problems=MAX_PROBLEMS
        )
        for line, _ in wrong:
            text = block.fields(_index_at(block, line))[index]
            pointer = f"/{self._table.name}/{target}"
            detail = mismatch(kind, text)
            problems.append(LineProblem(line, None, detail, self._names[index], pointer))
        buffers = (validity, ends, values) if kind == "string" else (validity, values)
        return pa.Array.from_buffers(TYPES[kind], rows, [pa.py_buffer(part) for part in buffers])


def _index_at(block: CsvRecords, line: int) -> int:
    """Return the record that begins on a line."""
    return bisect_left(range(len(block)), line, key=block.line)
