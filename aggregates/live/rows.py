"""What a subscriber holds, and what has to be sent to it.

Rows change faster than a slow client can receive them. So changes are not queued one by one: only
the set of rows that differ from what was last sent is kept, and the difference is sent when there
is room.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from foundation.api.rendering import to_json
from foundation.json_types import JsonObject

_PREVIOUS = "previous"


@dataclass(frozen=True, slots=True)
class RowDifference:
    """One row that differs from the subscriber's. No row: it was removed."""

    match: str
    #: The grouping values, as JSON.
    key: bytes
    row: bytes | None


class SubscriptionRows:
    """The rows of one subscription."""

    def __init__(self, measures: frozenset[str]) -> None:
        self._measures = measures
        #: The current rows, and the rows as last sent.
        self._rows: dict[bytes, bytes] = {}
        self._sent: dict[bytes, bytes] = {}
        self._differing: dict[bytes, None] = {}
        #: Whether every row is known here. Not so for a client that has resumed and missed
        #: nothing: it holds rows that this process has never seen.
        self.is_complete = False

    def replace(self, rows: Iterable[JsonObject]) -> None:
        """Replace all rows."""
        before, self._rows = self._rows, {self.key(row): to_json(row) for row in rows}
        self._differing |= dict.fromkeys((*before, *self._sent, *self._rows))
        self.is_complete = True

    def change(self, rows: Iterable[JsonObject], removed: Iterable[JsonObject]) -> None:
        """Apply rows that have changed or been removed."""
        for row in rows:
            key = self.key(row)
            self._rows[key] = to_json(row)
            self._differing[key] = None
        for old in removed:
            key = to_json(old)
            self._rows.pop(key, None)
            self._differing[key] = None

    def all(self) -> list[tuple[bytes, bytes]]:
        """Return every row with its key, and mark all as sent."""
        self._sent = dict(self._rows)
        self._differing.clear()
        return list(self._rows.items())

    def take(self) -> list[RowDifference]:
        """Return the differences to send, and mark them as sent."""
        differences = [d for key in self._differing if (d := self._difference(key)) is not None]
        self._differing.clear()
        return differences

    def key(self, row: JsonObject) -> bytes:
        """Return a row's key: everything but its measures."""
        return to_json(
            {
                name: value
                for name, value in row.items()
                if name not in self._measures and name != _PREVIOUS
            }
        )

    def _difference(self, key: bytes) -> RowDifference | None:
        row, sent = self._rows.get(key), self._sent.get(key)
        if row == sent and (row is not None or self.is_complete):
            return None
        if row is None:
            self._sent.pop(key, None)
            return RowDifference("remove", key, None)
        self._sent[key] = row
        is_new = sent is None and self.is_complete
        return RowDifference("add" if is_new else "change", key, row)
