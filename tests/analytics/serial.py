"""A serial model of a dataset: uploads are applied one after the other, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analytics.table_definitions import TableDefinition

Row = dict[str, Any]


class Serial:
    """Tables as dictionaries."""

    def __init__(self, tables: Mapping[str, TableDefinition]) -> None:
        self._tables = tables
        self._rows: dict[str, dict[tuple[Any, ...], Row]] = {name: {} for name in tables}

    def do(self, table: str, op: str, row: Row) -> None:
        definition = self._tables[table]
        key = tuple(row[name] for name in definition["key"])
        rows = self._rows[table]
        if op == "delete":
            rows.pop(key, None)
            return
        empty = dict.fromkeys(definition["columns"])
        below = rows.get(key, empty) if op == "update" else empty
        rows[key] = {**below, **row}

    def rows(self, table: str) -> list[Row]:
        """Return a table's rows by key."""
        return [row for _, row in sorted(self._rows[table].items())]

    def copy(self) -> Serial:
        other = Serial(self._tables)
        other._rows = {name: dict(rows) for name, rows in self._rows.items()}
        return other
