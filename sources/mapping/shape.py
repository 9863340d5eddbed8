"""A table's rows as documents: `_id` is the key, the other fields are the columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring as quote

from sources.conditions import SourceUnsuitable
from sources.mapping.cells import UNCHANGED, Cells, check_size
from sources.mapping.kinds import Mapper

ID = "_id"


class MissingDocumentKey(ValueError):
    """A row without the key that identifies its document."""


#: Errors raised for values that a genuine PostgreSQL server never sends.
_INVALID = (ValueError, LookupError, ArithmeticError)


def _invalid_row() -> SourceUnsuitable:
    return SourceUnsuitable(
        "protocol_violation", "The server sent a row that does not match the table."
    )


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column that documents contain."""

    name: str
    type_oid: int
    type_modifier: int
    write: Mapper = field(compare=False)


#: A row's values as Extended JSON, by column.
Fields = list[str]


@dataclass(frozen=True, slots=True)
class DocumentShape:
    """The columns of a table's documents, in order, and which of them form the key."""

    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...]

    def layout(self, names: Sequence[str]) -> RowLayout:
        """Return the layout of rows with columns of these names."""
        return RowLayout(self, tuple(names.index(column.name) for column in self.columns))

    @property
    def key_indexes(self) -> tuple[int, ...]:
        """The indexes of the key columns."""
        names = [column.name for column in self.columns]
        return tuple(names.index(name) for name in self.key)

    def identity(self, fields: Sequence[str]) -> str:
        """Return the `_id` of a row."""
        if len(self.key) == 1:
            return fields[self.key_indexes[0]]
        parts = (
            f"{quote(name)}:{fields[index]}"
            for name, index in zip(self.key, self.key_indexes, strict=True)
        )
        return "{" + ",".join(parts) + "}"

    def document(self) -> Callable[[str, Sequence[str]], str]:
        """Return a function that serializes a row as a document."""
        heads = [f",{quote(column.name)}:" for column in self.columns if column.name != ID]
        id_index = next((n for n, column in enumerate(self.columns) if column.name == ID), None)

        def write(identity: str, fields: Sequence[str]) -> str:
            parts = [f'{{"{ID}":', identity]
            data = [f for n, f in enumerate(fields) if n != id_index]
            for head, value in zip(heads, data, strict=True):
                parts.append(head)
                parts.append(value)
            parts.append("}")
            return "".join(parts)

        return write


class RowLayout:
    """Reads rows whose columns have a given order."""

    def __init__(self, shape: DocumentShape, indexes: tuple[int, ...]) -> None:
        self.shape = shape
        self._indexes = indexes
        self._writers = [column.write for column in shape.columns]
        self._key = [(index, indexes[index]) for index in shape.key_indexes]

    def fields(self, cells: Cells, before: Cells | None) -> list[str | None]:
        """Return a row's values; None for values that neither it nor the previous row contains."""
        try:
            return self._fields(cells, before)
        except _INVALID as invalid:
            raise _invalid_row() from invalid

    def _fields(self, cells: Cells, before: Cells | None) -> list[str | None]:
        check_size([cells[index] for index in self._indexes])
        fields: list[str | None] = []
        for index, write in zip(self._indexes, self._writers, strict=True):
            cell = cells[index]
            if cell is UNCHANGED and before is not None:
                cell = before[index]
                # If only the key of the previous row was sent, its other cells are NULL.
                if cell is None:
                    cell = UNCHANGED
            if isinstance(cell, str):
                fields.append(write(cell))
            else:
                fields.append("null" if cell is None else None)
        return fields

    def identity(self, cells: Cells, before: Cells | None = None) -> str:
        """Return the `_id` of a row whose key is in it or in the previous row."""
        try:
            return self._identity(cells, before)
        except _INVALID as invalid:
            raise _invalid_row() from invalid

    def _identity(self, cells: Cells, before: Cells | None) -> str:
        fields = [""] * len(self._writers)
        for index, cell_index in self._key:
            cell = cells[cell_index]
            if cell is UNCHANGED and before is not None:
                cell = before[cell_index]
            if not isinstance(cell, str):
                raise MissingDocumentKey("a key is never NULL and always present")
            fields[index] = self._writers[index](cell)
        return self.shape.identity(fields)
