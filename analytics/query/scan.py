"""Reads files, only as much of them as a filter needs.

Sorted files that cannot hold a key that the filter allows are not opened; of those that are, row
groups whose statistics exclude the filter are not read. Segments are read whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.dataset as ds

from analytics.query.files import Part, QueryFile
from analytics.query.filters import RowFilter
from analytics.rows.file_store import filesystem_of
from analytics.rows.ids import translated
from analytics.rows.segment import read_segment, with_columns
from analytics.schema import OP, AnalyticsTable, TableView
from foundation.errors import QueryTooExpensive
from foundation.json_types import JsonObject

#: Maximum bytes that a query may hold in memory.
MAX_BYTES = 1024 * 1024 * 1024
#: Maps an ID-key's name and a part to the ids of its temporary ids.
IdsIn: TypeAlias = Callable[[str, Part], pa.Array]
_PARQUET = ds.ParquetFileFormat()


@dataclass(slots=True)
class _StageReads:
    """Counters of what was read from one stage."""

    files: int = 0
    files_skipped: int = 0
    groups: int = 0
    groups_skipped: int = 0
    rows: int = 0


class ScanReader:
    """Reads the files of one query and counts what it reads."""

    def __init__(self) -> None:
        self._counted: dict[str, _StageReads] = {}
        self._bytes = 0

    def describe(self) -> JsonObject:
        """Return for each stage how many files, row groups and rows were read and skipped."""
        stages: JsonObject = {}
        for stage in ("authority", "merged", "sorted", "unsorted"):
            counted = self._counted.get(stage, _StageReads())
            figures: JsonObject = {
                "files": counted.files,
                "files_skipped": counted.files_skipped,
                "rows": counted.rows,
            }
            if stage != "unsorted":
                figures["row_groups"] = counted.groups
                figures["row_groups_skipped"] = counted.groups_skipped
            stages[stage] = figures
        return stages

    def authority(
        self,
        files: Iterable[QueryFile],
        table: AnalyticsTable,
        view: TableView,
        columns: Sequence[str],
        where: RowFilter,
    ) -> pa.Table:
        """Return columns of the rows for which a filter holds."""
        schema = table.view_schema(view)
        wanted = pa.schema([schema.field(name) for name in columns])
        tables = [
            self._sorted(file, schema, view.key, columns, where)
            for file in sorted(files, key=lambda file: file.lowest)
        ]
        return pa.concat_tables([rows for rows in tables if rows is not None] or [_none(wanted)])

    def later(
        self,
        files: Iterable[QueryFile],
        table: AnalyticsTable,
        columns: Sequence[str],
        where: RowFilter,
        ids_in: IdsIn | None = None,
    ) -> pa.Table:
        """Return operations, in order, on the keys for which a filter over keys holds.

        `ids_in` maps the temporary ids of segments to ids.
        """
        empty = with_columns(_none(table.stored), table, columns)
        tables = [empty]
        for file in files:
            if file.stage == "unsorted":
                rows = self._segment(file, table, columns, where, ids_in)
            else:
                names = [*columns, OP]
                rows = self._sorted(file, table.stored, table.key, names, where)
            if rows is not None:
                tables.append(rows.select(empty.column_names))
        return pa.concat_tables(tables)

    def _segment(
        self,
        file: QueryFile,
        table: AnalyticsTable,
        columns: Sequence[str],
        where: RowFilter,
        ids_in: IdsIn | None,
    ) -> pa.Table:
        counted = self._counted.setdefault(file.stage, _StageReads())
        counted.files += 1
        counted.rows += file.rows
        if where.expression is not None and where.columns < set(columns):
            # Most segments contain none of a few keys: then the other columns are not unpacked.
            keys = _rows_of(file, table, sorted(where.columns), ids_in)
            if not keys.filter(where.expression).num_rows:
                return with_columns(_none(table.stored), table, columns)
        rows = _rows_of(file, table, columns, ids_in)
        self._hold(rows)
        return rows if where.expression is None else rows.filter(where.expression)

    def _sorted(
        self,
        file: QueryFile,
        schema: pa.Schema,
        key: Sequence[str],
        columns: Sequence[str],
        where: RowFilter,
    ) -> pa.Table | None:
        counted = self._counted.setdefault(file.stage, _StageReads())
        first = where.ranges(key[0])
        if not all(bounds.meets(file.lowest[0], file.highest[0]) for bounds in first):
            counted.files_skipped += 1
            return None
        files, place = filesystem_of(file.path)
        whole = _PARQUET.make_fragment(place, files)
        part = whole if where.expression is None else whole.subset(where.expression, schema=schema)
        counted.files += 1
        counted.groups += part.num_row_groups
        counted.groups_skipped += whole.num_row_groups - part.num_row_groups
        counted.rows += sum(group.num_rows for group in part.row_groups)
        rows = part.to_table(schema=schema, columns=list(columns), filter=where.expression)
        self._hold(rows)
        return rows

    def _hold(self, rows: pa.Table) -> None:
        self._bytes += rows.nbytes
        if self._bytes > MAX_BYTES:
            raise QueryTooExpensive(
                f"The query would have to hold more than {MAX_BYTES} bytes of rows; filter by "
                "the key, or select fewer columns."
            )


def _rows_of(
    file: QueryFile, table: AnalyticsTable, columns: Sequence[str], ids_in: IdsIn | None
) -> pa.Table:
    """Return a segment's columns, with ids instead of temporary ids."""
    rows = read_segment(file.path, table, columns)
    temporary = [name for name in columns if name in table.ids]
    if not temporary or ids_in is None or file.part is None:
        return rows
    part = file.part
    return translated(rows, [(name, ids_in(table.ids[name], part)) for name in temporary])


def _none(schema: pa.Schema) -> pa.Table:
    return schema.empty_table()
