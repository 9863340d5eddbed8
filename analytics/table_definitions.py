"""The definition stored in a dataset's row. This module loads no columnar library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NotRequired, TypeAlias, TypedDict

#: What a column may hold, beside ids.
TYPE_NAMES = ("bool", "int32", "int64", "double", "string", "date", "timestamp")
#: What the keys of an ID-key, or the parts of such keys, may be.
KEY_TYPE_NAMES = ("string", "int64")
MAX_DATA_COLUMNS = 60
#: A column of this type and the name of an ID-key holds keys, which are stored as their ids.
_ID = "id:"
#: The columns of the table that says which key has which id.
KEY, ID = "key", "id"


#: What the keys of an ID-key are: of one type, or of several parts by their names.
IdKeyDefinition: TypeAlias = str | dict[str, str]


class ViewDefinition(TypedDict):
    """A secondary view as it is kept."""

    key: list[str]
    #: Optional; by default a view has all columns.
    columns: NotRequired[list[str]]


class TableDefinition(TypedDict):
    """A table as it is kept."""

    columns: dict[str, str]
    key: list[str]
    views: dict[str, ViewDefinition]


class DatasetDefinition(TypedDict):
    """The definition of a dataset."""

    tables: dict[str, TableDefinition]
    #: ID-keys and what their keys are.
    id_keys: dict[str, IdKeyDefinition]


def read_definition(text: str) -> DatasetDefinition:
    """Parse a stored definition. Those older than ID-keys have none."""
    members = json.loads(text)
    return {"tables": members["tables"], "id_keys": members.get("id_keys", {})}


def id_key_of(kind: str) -> str | None:
    """Return the ID-key of a column's type, if it has one."""
    return kind.removeprefix(_ID) if kind.startswith(_ID) else None


def ids_of(table: TableDefinition) -> Mapping[str, str]:
    """Return the columns that hold ids, and of which ID-key each."""
    id_keys = {column: id_key_of(kind) for column, kind in table["columns"].items()}
    return {column: name for column, name in id_keys.items() if name is not None}
