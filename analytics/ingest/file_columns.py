"""Which column of a file becomes which column of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from analytics.ingest.operations import RowOperation
from analytics.schema import AnalyticsTable
from documents.transfer.formats import ColumnMapping, FileFormat
from foundation.errors import FieldProblem, InvalidParameter

#: A table, and a batch of operations on it.
TableBatch: TypeAlias = tuple[AnalyticsTable, pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class UploadTarget:
    """The table and the operation given in the URL of an upload, and how its file is read."""

    table: str | None
    op: str | None
    form: FileFormat


def table_and_op(
    tables: Mapping[str, AnalyticsTable], target: UploadTarget, metadata: Mapping[bytes, bytes]
) -> tuple[AnalyticsTable, RowOperation]:
    """Return what a file is for, by its metadata or else by the URL."""
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


def mapped(form: FileFormat, names: Sequence[str]) -> Sequence[ColumnMapping]:
    """Return the columns of a file with these columns; all of them unless the caller names some."""
    if form.columns is None:
        return [ColumnMapping(name, name) for name in names]
    for index, column in enumerate(form.columns):
        if column.source not in names:
            detail = f"The file has no column {column.source[:63]!r}."
            raise InvalidParameter(errors=[FieldProblem(f"columns/{index}", "invalid", detail)])
    targets = [column.target for column in form.columns]
    if len(set(targets)) < len(targets):
        detail = "Two columns become the same column of the table."
        raise InvalidParameter(errors=[FieldProblem("columns", "invalid", detail)])
    return form.columns
