"""Documents as tables, for users of pandas or Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from rillbase import ejson
from rillbase.shapes import Document
from rillbase.values import Binary, BoundaryValue, ObjectId, RegularExpression, Timestamp

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Tabular(ABC):
    """Something with documents."""

    __slots__ = ()

    @property
    @abstractmethod
    def documents(self) -> list[Document]: ...

    def to_pandas(self) -> pandas.DataFrame:
        """Return the documents as a data frame. Needs the extra `pandas`.

        Example:
            rows = visits.query(RowQuery(group_by=["page"]))
            print(rows.to_pandas()["page"][0])  # /
        """
        return to_pandas(self.documents)

    def to_polars(self) -> polars.DataFrame:
        """Return the documents as a Polars data frame. Needs the extra `polars`.

        Example:
            rows = visits.query(RowQuery(group_by=["page"]))
            print(rows.to_polars()["page"][0])  # /
        """
        return polars_of(to_arrow(self.documents))

    def to_arrow(self) -> pyarrow.Table:
        """Return the documents as a table. Needs the extra `arrow`.

        Example:
            rows = visits.query(RowQuery(group_by=["page"]))
            print(rows.to_arrow().column("page")[0])  # /
        """
        return to_arrow(self.documents)


def to_pandas(documents: Sequence[Document]) -> pandas.DataFrame:
    """Return a data frame with a column for each field of the documents, the `_id` first."""
    import pandas as pd  # noqa: PLC0415 -- an extra

    return pd.DataFrame([_row(document) for document in documents], columns=_columns(documents))


def to_arrow(documents: Sequence[Document]) -> pyarrow.Table:
    """Return a table with a column for each field of the documents, the `_id` first.

    A column's type is that of its values. If they have no common type, the column is text: strings
    are unchanged, other values become Extended JSON.
    """
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    rows = [_row(document) for document in documents]
    columns = _columns(documents)
    return pa.table({name: _array([row.get(name) for row in rows]) for name in columns})


def polars_of(table: pyarrow.Table) -> polars.DataFrame:
    """Return a Polars data frame of a table."""
    import polars as pl  # noqa: PLC0415 -- an extra

    # Joining the parts of columns would copy them.
    return cast("polars.DataFrame", pl.from_arrow(table, rechunk=False))


def _array(values: Sequence[object]) -> pyarrow.Array:
    import pyarrow as pa  # noqa: PLC0415 -- an extra

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else _text(value) for value in values])


def _text(value: object) -> str:
    return value if isinstance(value, str) else ejson.dumps(value)


def _columns(documents: Sequence[Document]) -> list[str]:
    names = dict.fromkeys(name for document in documents for name in document)
    return sorted(names, key=lambda name: name != "_id")


def _row(document: Document) -> Document:
    return {name: _cell(value) for name, value in document.items()}


def _cell(value: object) -> object:
    """Return a value that tables support instead of one that only documents support."""
    match value:
        case ObjectId() | RegularExpression() | BoundaryValue() | Timestamp():
            return str(value)
        case Binary():
            return value.data
        case Mapping():
            return {name: _cell(member) for name, member in value.items()}
        case list():
            return [_cell(item) for item in value]
        case _:
            return value
