"""Converts received columns to operations on a table's keys.

An `insert` is the whole row: missing columns are null. An `update` sets the columns that it has and
leaves the others unchanged, or creates the row. A `delete` has only the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from analytics.rows.compound import encode_keys
from analytics.schema import TYPES, AnalyticsTable
from foundation.errors import FieldProblem, InvalidUpload


class RowOperation(StrEnum):
    """The operation on a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


def operations(
    table: AnalyticsTable, op: RowOperation, sent: Mapping[str, pa.Array], rows: int
) -> pa.RecordBatch:
    """Return one operation per row, from columns that all rows have, or raise `InvalidUpload`."""
    _check_names(table, op, sent)
    if op is RowOperation.INSERT:
        mask = table.inserted
    elif op is RowOperation.DELETE:
        mask = table.deleted
    else:
        mask = sum(table.bits[name] for name in sent if name in table.bits)
    return with_masks(table, sent, pa.repeat(pa.scalar(mask, pa.int64()), rows))


def with_masks(
    table: AnalyticsTable, sent: Mapping[str, pa.Array], masks: pa.Array
) -> pa.RecordBatch:
    """Return a table's columns, as received, with the masks of their operations."""
    arrays = []
    for name, kind in table.shown.items():
        column = sent.get(name)
        if column is None:
            arrays.append(pa.nulls(len(masks), TYPES[kind]))
            continue
        fitting = _fitting(table, name, column)
        if name in table.key and fitting.null_count:
            row = pc.index(pc.is_null(fitting), True).as_py()
            raise refused(
                table, name, "no_key", f"The key is null in row {row}; keys must have a value."
            )
        arrays.append(fitting)
    batch = pa.RecordBatch.from_arrays([*arrays, masks], schema=table.sent)
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidUpload(f"The columns of {table.name} are damaged: {error}.") from None
    return batch


def refused(table: AnalyticsTable, column: str, code: str, detail: str) -> InvalidUpload:
    problem = FieldProblem(f"/{table.name}/{column}", code, detail)
    return InvalidUpload(f"{table.name}.{column}: {detail}", errors=[problem])


def _check_names(table: AnalyticsTable, op: RowOperation, sent: Mapping[str, pa.Array]) -> None:
    for name in sent:
        if name not in table.columns:
            raise refused(table, name, "unknown_column", "The table has no such column.")
        if op is RowOperation.DELETE and name not in table.key:
            raise refused(table, name, "not_key", "A delete may only have the key's columns.")
    for name in table.key:
        if name not in sent:
            raise refused(table, name, "no_key", "The key's columns are required.")


def _fitting(table: AnalyticsTable, name: str, column: pa.Array) -> pa.Array:
    """Return a column cast to the table's type, if the cast is lossless."""
    if name in table.parts:
        return _texts(table, name, column)
    return _typed(table, name, column, TYPES[table.shown[name]])


def _texts(table: AnalyticsTable, name: str, column: pa.Array) -> pa.Array:
    """Return composite keys as texts."""
    parts, kind = table.parts[name], column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.string())
    if not pa.types.is_struct(kind) or {field.name for field in kind} != set(parts):
        detail = f"A key must be an object with the fields {', '.join(parts)}."
        raise refused(table, name, "wrong_type", detail)
    fitting = [_typed(table, name, column.field(part), parts[part]) for part in parts]
    texts = encode_keys(
        pa.StructArray.from_arrays(fitting, names=list(parts), mask=column.is_null())
    )
    if texts.null_count > column.null_count:
        raise refused(table, name, "wrong_type", "Every part of a key must have a value.")
    return texts


def _typed(
    table: AnalyticsTable, name: str, column: pa.Array, column_type: pa.DataType
) -> pa.Array:
    kind = column.type
    if kind == column_type:
        return column
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not _is_alike(kind, column_type):
        raise refused(
            table,
            name,
            "wrong_type",
            f"The values are of type {kind}, but the column has type {column_type}.",
        )
    try:
        return column.cast(column_type)
    except pa.ArrowInvalid as lossy:
        raise refused(table, name, "wrong_type", f"{lossy}.") from None


def _is_alike(kind: pa.DataType, column_type: pa.DataType) -> bool:
    types = pa.types
    if types.is_null(kind) or kind == column_type:
        return True
    if types.is_integer(column_type):
        return bool(types.is_integer(kind))
    if types.is_floating(column_type):
        return bool(types.is_floating(kind) or types.is_integer(kind))
    if types.is_string(column_type):
        return bool(types.is_large_string(kind) or types.is_string_view(kind))
    if types.is_timestamp(column_type):
        return bool(types.is_timestamp(kind))
    return bool(types.is_date(column_type) and types.is_date(kind))
