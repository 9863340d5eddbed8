"""Documents as tables, for those who have pandas or Arrow installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rillbase.shapes import Document
from rillbase.values import Binary, Bound, ObjectId, RegularExpression, Timestamp

if TYPE_CHECKING:
    import pandas
    import pyarrow


def to_pandas(documents: Sequence[Document]) -> pandas.DataFrame:
    """Return a frame with a column for each field of the documents, the `_id` first."""
    import pandas as pd  # noqa: PLC0415 -- an extra

    return pd.DataFrame([_row(document) for document in documents], columns=_columns(documents))


def to_arrow(documents: Sequence[Document]) -> pyarrow.Table:
    """Return a table with a column for each field of the documents, the `_id` first."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    rows = [_row(document) for document in documents]
    columns = _columns(documents)
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in columns})


def _columns(documents: Sequence[Document]) -> list[str]:
    names = dict.fromkeys(name for document in documents for name in document)
    return sorted(names, key=lambda name: name != "_id")


def _row(document: Document) -> Document:
    return {name: _cell(value) for name, value in document.items()}


def _cell(value: object) -> object:
    """Return what tables know instead of what only documents have."""
    if isinstance(value, ObjectId | RegularExpression | Bound | Timestamp):
        return str(value)
    return value.data if isinstance(value, Binary) else value
