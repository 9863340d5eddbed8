"""Tables as Arrow columns, and the operation masks of stored rows.

A stored row is an operation on a key. Its 64-bit mask encodes which columns it sets (bit i: the
i-th column that is not part of the key), whether it clears the previous row (inserts and deletes
do, updates do not), and whether it deletes the row. Two successive operations on a key merge into
one operation of the same form, so rows can be merged in any grouping as long as their order is
kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from analytics.table_definitions import (
    ID,
    KEY,
    IdKeyDefinition,
    TableDefinition,
    ids_of,
    read_definition,
)

#: The column of the operation's mask, in all files except the authority's.
OP = "_op"
CLEARS, GONE = 1 << 61, 1 << 62

TYPES: Mapping[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
KEYS_COLUMN, IDS_COLUMN = "keys", "ids"
#: The view of an ID-key's table that is sorted by id.
BY_ID = "by_id"


@dataclass(frozen=True, slots=True)
class TableView:
    """A subset of columns with a sort key. The primary view has no name and all columns."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class AnalyticsTable:
    """A table's columns and key.

    The table of an ID-key has keys and their ids. It is derived from uploads to other tables.
    """

    name: str
    #: The columns as stored, in which ids are integers.
    columns: Mapping[str, str]
    key: tuple[str, ...]
    views: tuple[TableView, ...]
    #: Maps columns of ids to their ID-keys.
    ids: Mapping[str, str]
    #: The columns as sent and returned, with keys instead of ids. Composite keys are texts here
    #: (`analytics.rows.compound`).
    shown: Mapping[str, str]
    is_id_key: bool = False
    #: The parts of the keys of columns with composite keys.
    parts: Mapping[str, Mapping[str, pa.DataType]] = field(default_factory=dict)

    @cached_property
    def id_keys(self) -> frozenset[str]:
        """The ID-keys that the table uses."""
        return frozenset([self.name] if self.is_id_key else self.ids.values())

    @cached_property
    def bits(self) -> dict[str, int]:
        """The mask's bit of each column that is not part of the key."""
        data = [name for name in self.columns if name not in self.key]
        return {name: 1 << index for index, name in enumerate(data)}

    @cached_property
    def inserted(self) -> int:
        """The mask of an insert, which sets all columns."""
        return CLEARS | sum(self.bits.values())

    @property
    def deleted(self) -> int:
        return CLEARS | GONE

    @cached_property
    def primary(self) -> TableView:
        return TableView("", self.key, tuple(self.columns))

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns as they are stored."""
        return self._schema(self.columns)

    @cached_property
    def types(self) -> Mapping[str, pa.DataType]:
        """The columns as callers send and see them."""
        return {
            name: pa.struct(list(self.parts[name].items())) if name in self.parts else TYPES[kind]
            for name, kind in self.shown.items()
        }

    @cached_property
    def sent(self) -> pa.Schema:
        """The columns as they are sent, with the operation on the row."""
        return self._schema(self.shown).append(self.stored.field(OP))

    def _schema(self, kinds: Mapping[str, str]) -> pa.Schema:
        return pa.schema(
            [pa.field(n, TYPES[t], nullable=n not in self.key) for n, t in kinds.items()]
        )

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns as they are stored in stages before the authority."""
        return self.arrow.append(pa.field(OP, pa.int64(), nullable=False))

    def view_schema(self, view: TableView) -> pa.Schema:
        return pa.schema([self.arrow.field(name) for name in view.columns])

    def view(self, name: str) -> TableView:
        return next(v for v in (self.primary, *self.views) if v.name == name)


def tables_of(definition: str) -> dict[str, AnalyticsTable]:
    """Return a dataset's tables, including those of its ID-keys, from its definition."""
    parsed = read_definition(definition)
    tables = {name: _table(name, t, parsed["id_keys"]) for name, t in parsed["tables"].items()}
    return tables | {name: _id_table(name, kind) for name, kind in parsed["id_keys"].items()}


def _table(
    name: str, table: TableDefinition, id_keys: Mapping[str, IdKeyDefinition]
) -> AnalyticsTable:
    views = [TableView(n, tuple(v["key"]), tuple(v["columns"])) for n, v in table["views"].items()]
    ids = ids_of(table)
    columns = {n: "int64" if n in ids else kind for n, kind in table["columns"].items()}
    keys = {n: id_keys[name] for n, name in ids.items()}
    parts = {n: _parts(kind) for n, kind in keys.items() if isinstance(kind, dict)}
    texts = {n: kind if isinstance(kind, str) else "string" for n, kind in keys.items()}
    return AnalyticsTable(
        name, columns, tuple(table["key"]), tuple(views), ids, columns | texts, parts=parts
    )


def _id_table(name: str, kind: IdKeyDefinition) -> AnalyticsTable:
    """Return an ID-key's table. Composite keys are stored as text, and each part in a column."""
    if isinstance(kind, str):
        columns = {KEY: kind, ID: "int64"}
    else:
        columns = {KEY: "string", ID: "int64", **kind}
    by_id = TableView(BY_ID, (ID, KEY), (ID, *(column for column in columns if column != ID)))
    return AnalyticsTable(name, columns, (KEY,), (by_id,), {}, columns, is_id_key=True)


def _parts(kind: Mapping[str, str]) -> Mapping[str, pa.DataType]:
    return {name: TYPES[part] for name, part in kind.items()}
