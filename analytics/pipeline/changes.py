"""The effect of changes of the primary view on the others: rows removed and inserted.

They are not in the order of the other views, so they are sorted and written whenever enough have
accumulated: however much enters the authority at once, memory holds only a part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pyarrow as pa

from analytics.rows.file_store import StoredPath
from analytics.rows.latest_operation import latest
from analytics.rows.segment import with_mask
from analytics.rows.sorted_file import SortedFileInfo, write_sorted
from analytics.schema import AnalyticsTable, TableView

#: Maximum bytes sorted in memory at once, per view.
PART_BYTES = 96 * 1024 * 1024


class ChangeWriter:
    """The changes of all views of a table, block by block."""

    def __init__(self, folder: StoredPath, table: AnalyticsTable) -> None:
        self._folder = folder
        self._table = table
        self._held: dict[str, list[pa.Table]] = {view.name: [] for view in table.views}
        self._files: list[tuple[str, SortedFileInfo]] = []

    def add(self, base: pa.Table | None, since: pa.Table, left: pa.Table) -> None:
        """Add a block: its old rows, the operations on them, and the new rows."""
        if not self._held:
            return
        key = list(self._table.key)
        touched = since.select(key)
        old_rows = None if base is None else base.join(touched, key, join_type="left semi")
        come = left if base is None else left.join(touched, key, join_type="left semi")
        for view in self._table.views:
            self._hold(view, old_rows, come)

    def written(self) -> Iterator[tuple[str, SortedFileInfo]]:
        """Write the rest, and yield each file with its view."""
        for view in self._table.views:
            self._write(view)
        yield from self._files

    def _hold(self, view: TableView, gone: pa.Table | None, come: pa.Table) -> None:
        held, columns = self._held[view.name], list(view.columns)
        # A row that keeps its key is inserted after it was removed.
        if gone is not None:
            held.append(with_mask(self._table, gone.select(columns), self._table.deleted))
        held.append(with_mask(self._table, come.select(columns), self._table.inserted))
        if sum(part.nbytes for part in held) >= PART_BYTES:
            self._write(view)

    def _write(self, view: TableView) -> None:
        held, self._held[view.name] = self._held[view.name], []
        if not held:
            return
        rows = latest(pa.concat_tables(held), view.key, {})
        path = self._folder / "changes" / f"{uuid4().hex}.parquet"
        written = write_sorted(path, rows.schema, view.key, [rows])
        if written is not None:
            self._files.append((view.name, written))
