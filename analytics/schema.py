"""Tables as columns of Arrow, and what a stored row says beside its columns.

A stored row is an operation on a key. Its 64-bit mask says which columns it sets (bit i: the i-th
column that is no part of the key), whether it clears what was there before (an insert and a delete
do, an update does not), and whether it leaves no row behind. Two operations on one key, an earlier
and a later one, make one operation by the same rules; so rows can be merged in any grouping, as
long as their order is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NotRequired, TypedDict

import pyarrow as pa

#: The operation's mask, in every file but those of the authority.
OP = "_op"
MAX_DATA_COLUMNS = 60
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


class ViewDefinition(TypedDict):
    """A secondary view as it is kept."""

    key: list[str]
    #: Whoever makes a dataset may leave them out: then it has all.
    columns: NotRequired[list[str]]


class TableDefinition(TypedDict):
    """A table as it is kept."""

    columns: dict[str, str]
    key: list[str]
    views: dict[str, ViewDefinition]


@dataclass(frozen=True, slots=True)
class View:
    """Some columns in some order. The primary view has no name and all columns."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table's columns and key."""

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]
    views: tuple[View, ...]

    @cached_property
    def bits(self) -> dict[str, int]:
        """The mask's bit of each column that is no part of the key."""
        data = [name for name in self.columns if name not in self.key]
        return {name: 1 << place for place, name in enumerate(data)}

    @cached_property
    def inserted(self) -> int:
        """The mask of an insert: it sets whatever the table has."""
        return CLEARS | sum(self.bits.values())

    @property
    def deleted(self) -> int:
        return CLEARS | GONE

    @cached_property
    def primary(self) -> View:
        return View("", self.key, tuple(self.columns))

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns as users see them."""
        return pa.schema(
            [pa.field(n, TYPES[t], nullable=n not in self.key) for n, t in self.columns.items()]
        )

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns as they are stored before the authority."""
        return self.arrow.append(pa.field(OP, pa.int64(), nullable=False))

    def view_schema(self, view: View) -> pa.Schema:
        return pa.schema([self.arrow.field(name) for name in view.columns])

    def view(self, name: str) -> View:
        return next(v for v in (self.primary, *self.views) if v.name == name)


def tables_of(definition: str) -> dict[str, Table]:
    """Return a dataset's tables, from what its row says."""
    tables: dict[str, TableDefinition] = json.loads(definition)["tables"]
    return {name: _table(name, table) for name, table in tables.items()}


def _table(name: str, table: TableDefinition) -> Table:
    views = [View(n, tuple(v["key"]), tuple(v["columns"])) for n, v in table["views"].items()]
    return Table(name, table["columns"], tuple(table["key"]), tuple(views))
