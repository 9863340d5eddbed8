"""What a subscriber holds, and what it has to be told.

Rows change more often than a slow client can be told. So changes are not kept one by one: which
rows differ from what was told last is, and the difference is told when there is room.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from foundation.api.rendering import to_json
from foundation.json_types import JsonObject

_PREVIOUS = "previous"


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that the subscriber does not hold as it is. No row: it has gone."""

    match: str
    #: The by-values, as JSON.
    key: bytes
    row: bytes | None


class Rows:
    """The rows of one subscription."""

    def __init__(self, measures: frozenset[str]) -> None:
        self._measures = measures
        #: As they are, and as they were told last.
        self._rows: dict[bytes, bytes] = {}
        self._told: dict[bytes, bytes] = {}
        self._differing: dict[bytes, None] = {}
        #: Whether every row is known here. Not so for a client that has come back and missed
        #: nothing: it holds rows that this process has never seen.
        self.is_complete = False

    def replace(self, rows: Iterable[JsonObject]) -> None:
        """Learn all rows."""
        before, self._rows = self._rows, {self.key(row): to_json(row) for row in rows}
        self._differing |= dict.fromkeys((*before, *self._told, *self._rows))
        self.is_complete = True

    def change(self, rows: Iterable[JsonObject], removed: Iterable[JsonObject]) -> None:
        """Learn of rows that have changed or gone."""
        for row in rows:
            key = self.key(row)
            self._rows[key] = to_json(row)
            self._differing[key] = None
        for gone in removed:
            key = to_json(gone)
            self._rows.pop(key, None)
            self._differing[key] = None

    def all(self) -> list[tuple[bytes, bytes]]:
        """Return every row with its key, which counts as telling it."""
        self._told = dict(self._rows)
        self._differing.clear()
        return list(self._rows.items())

    def take(self) -> list[Difference]:
        """Return what has to be told, which counts as telling it."""
        found = [d for key in self._differing if (d := self._difference(key)) is not None]
        self._differing.clear()
        return found

    def key(self, row: JsonObject) -> bytes:
        """Return what tells a row apart: all of it that is not measured."""
        return to_json(
            {
                name: value
                for name, value in row.items()
                if name not in self._measures and name != _PREVIOUS
            }
        )

    def _difference(self, key: bytes) -> Difference | None:
        row, told = self._rows.get(key), self._told.get(key)
        if row == told and (row is not None or self.is_complete):
            return None
        if row is None:
            self._told.pop(key, None)
            return Difference("remove", key, None)
        self._told[key] = row
        is_new = told is None and self.is_complete
        return Difference("add" if is_new else "change", key, row)
