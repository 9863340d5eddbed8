"""The effect of changes of the primary view on the other views: rows removed and inserted.

The rows are not in the order of the other views, so they are sorted and written in batches of
limited size: memory is bounded however many rows enter the authority at once.
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
        self._blocks: dict[str, list[pa.Table]] = {view.name: [] for view in table.views}
        self._files: list[tuple[str, SortedFileInfo]] = []

    def add(self, base: pa.Table | None, operations: pa.Table, new_rows: pa.Table) -> None:
        """Add a block: its old rows, the operations on them, and the new rows."""
        if not self._blocks:
            return
        key = list(self._table.key)
        keys = operations.select(key)
        old_rows = None if base is None else base.join(keys, key, join_type="left semi")
        inserted = new_rows if base is None else new_rows.join(keys, key, join_type="left semi")
        for view in self._table.views:
            self._add_block(view, old_rows, inserted)

    def written(self) -> Iterator[tuple[str, SortedFileInfo]]:
        """Write the rest, and yield each file with its view."""
        for view in self._table.views:
            self._write(view)
        yield from self._files

    def _add_block(self, view: TableView, old_rows: pa.Table | None, new_rows: pa.Table) -> None:
        blocks, columns = self._blocks[view.name], list(view.columns)
        # A row that keeps its key is removed first, then inserted.
        if old_rows is not None:
            blocks.append(with_mask(self._table, old_rows.select(columns), self._table.deleted))
        blocks.append(with_mask(self._table, new_rows.select(columns), self._table.inserted))
        if sum(part.nbytes for part in blocks) >= PART_BYTES:
            self._write(view)

    def _write(self, view: TableView) -> None:
        blocks, self._blocks[view.name] = self._blocks[view.name], []
        if not blocks:
            return
        rows = latest(pa.concat_tables(blocks), view.key, {})
        path = self._folder / "changes" / f"{uuid4().hex}.parquet"
        file = write_sorted(path, rows.schema, view.key, [rows])
        if file is not None:
            self._files.append((view.name, file))
