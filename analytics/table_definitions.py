"""The definition stored in a dataset's row. This module loads no columnar library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NotRequired, TypeAlias, TypedDict

#: The types of columns, besides ids.
TYPE_NAMES = ("bool", "int32", "int64", "double", "string", "date", "timestamp")
#: The types of the keys of an ID-key, or of their parts.
KEY_TYPE_NAMES = ("string", "int64")
MAX_DATA_COLUMNS = 60
#: Prefix of the type of a column with an ID-key's keys, which are stored as ids.
_ID = "id:"
#: The columns of an ID-key's table, which maps keys to ids.
KEY, ID = "key", "id"


#: The type of an ID-key's keys, or the types of their parts by name.
IdKeyDefinition: TypeAlias = str | dict[str, str]


class ViewDefinition(TypedDict):
    """A secondary view as stored."""

    key: list[str]
    #: Optional; by default a view has all columns.
    columns: NotRequired[list[str]]


class TableDefinition(TypedDict):
    """A table as stored."""

    columns: dict[str, str]
    key: list[str]
    views: dict[str, ViewDefinition]


class DatasetDefinition(TypedDict):
    """The definition of a dataset."""

    tables: dict[str, TableDefinition]
    #: ID-keys and the types of their keys.
    id_keys: dict[str, IdKeyDefinition]


def read_definition(text: str) -> DatasetDefinition:
    """Parse a stored definition. Definitions older than ID-keys lack them."""
    members = json.loads(text)
    return {"tables": members["tables"], "id_keys": members.get("id_keys", {})}


def id_key_of(kind: str) -> str | None:
    """Return the ID-key of a column's type, if it has one."""
    return kind.removeprefix(_ID) if kind.startswith(_ID) else None


def ids_of(table: TableDefinition) -> Mapping[str, str]:
    """Return the columns of ids, with their ID-keys."""
    id_keys = {column: id_key_of(kind) for column, kind in table["columns"].items()}
    return {column: name for column, name in id_keys.items() if name is not None}
