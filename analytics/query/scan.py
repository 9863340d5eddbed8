"""Reads files, only as much of them as a filter needs.

Sorted files without keys that the filter allows are not opened; in the others, row groups whose
statistics exclude the filter are skipped. Segments are read completely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from analytics.query.files import Part, QueryFile
from analytics.query.filters import RowFilter
from analytics.query.ranges import Plain, ValueRange
from analytics.rows.file_store import filesystem_of, open_file
from analytics.rows.ids import with_final_ids
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
        self._reads: dict[str, _StageReads] = {}
        self._bytes = 0

    def describe(self) -> JsonObject:
        """Return for each stage how many files, row groups and rows were read and skipped."""
        stages: JsonObject = {}
        for stage in ("authority", "merged", "sorted", "unsorted"):
            reads = self._reads.get(stage, _StageReads())
            figures: JsonObject = {
                "files": reads.files,
                "files_skipped": reads.files_skipped,
                "rows": reads.rows,
            }
            if stage != "unsorted":
                figures["row_groups"] = reads.groups
                figures["row_groups_skipped"] = reads.groups_skipped
            stages[stage] = figures
        return stages

    def authority_files(
        self, files: Iterable[QueryFile], view: TableView, schema: pa.Schema, where: RowFilter
    ) -> dict[tuple[str, ...], list[Path]]:
        """Return the files of this machine that may have rows for a filter, by their columns.

        Their reader skips the row groups that are counted as skipped here.
        """
        found: dict[tuple[str, ...], list[Path]] = {}
        for file in sorted(files, key=lambda file: file.lowest):
            if self._is_skipped(file, view.key, where):
                continue
            metadata = _metadata(str(file.path))
            sizes = _sizes_read(metadata, schema, where)
            self._count(file.stage, sizes, metadata.num_row_groups)
            found.setdefault(tuple(metadata.schema.names), []).append(Path(str(file.path)))
        return found

    def authority(
        self,
        files: Iterable[QueryFile],
        table: AnalyticsTable,
        view: TableView,
        columns: Sequence[str],
        where: RowFilter,
    ) -> pa.Table:
        """Return columns of the authority's rows that match a filter, and of few others."""
        schema = table.view_schema(view)
        schema_read = pa.schema([schema.field(name) for name in columns])
        tables = [
            self._read_sorted(file, schema, view.key, columns, where)
            for file in sorted(files, key=lambda file: file.lowest)
        ]
        return pa.concat_tables(
            [rows for rows in tables if rows is not None] or [_empty(schema_read)]
        )

    def later(
        self,
        files: Iterable[QueryFile],
        table: AnalyticsTable,
        columns: Sequence[str],
        where: RowFilter,
        ids_in: IdsIn | None = None,
    ) -> pa.Table:
        """Return later operations, in order, on keys that match a filter, and on few others.

        `ids_in` maps the temporary ids of segments to ids.
        """
        empty = with_columns(_empty(table.stored), table, columns)
        tables = [empty]
        for file in files:
            if file.stage == "unsorted":
                rows = self._read_segment_file(file, table, columns, where, ids_in)
            else:
                names = [*columns, OP]
                rows = self._read_sorted(file, table.stored, table.key, names, where)
            if rows is not None:
                tables.append(rows.select(empty.column_names))
        return pa.concat_tables(tables)

    def _read_segment_file(
        self,
        file: QueryFile,
        table: AnalyticsTable,
        columns: Sequence[str],
        where: RowFilter,
        ids_in: IdsIn | None,
    ) -> pa.Table:
        reads = self._reads.setdefault(file.stage, _StageReads())
        reads.files += 1
        reads.rows += file.rows
        restricted = where.restricted(columns)
        expression = where.nearly(table.stored)
        if expression is not None and restricted < set(columns):
            # Most segments contain none of the keys. Then the other columns are not decompressed.
            keys = _rows_of(file, table, sorted(restricted), ids_in)
            if not keys.filter(expression).num_rows:
                return with_columns(_empty(table.stored), table, columns)
        rows = _rows_of(file, table, columns, ids_in)
        self._charge(rows)
        return rows if expression is None else rows.filter(expression)

    def _read_sorted(
        self,
        file: QueryFile,
        schema: pa.Schema,
        key: Sequence[str],
        columns: Sequence[str],
        where: RowFilter,
    ) -> pa.Table | None:
        if self._is_skipped(file, key, where):
            return None
        files, path = filesystem_of(file.path)
        fragment = _PARQUET.make_fragment(path, files)
        expression = where.nearly(schema)
        subset = fragment if expression is None else fragment.subset(expression, schema=schema)
        sizes = [group.num_rows for group in subset.row_groups]
        self._count(file.stage, sizes, fragment.num_row_groups)
        rows = subset.to_table(schema=schema, columns=list(columns), filter=expression)
        self._charge(rows)
        return rows

    def _is_skipped(self, file: QueryFile, key: Sequence[str], where: RowFilter) -> bool:
        """Return whether no key of a sorted file can match, and count that."""
        ranges = where.ranges(key[0])
        is_skipped = not all(r.meets(file.lowest[0], file.highest[0]) for r in ranges)
        self._reads.setdefault(file.stage, _StageReads()).files_skipped += is_skipped
        return is_skipped

    def _count(self, stage: str, sizes: Sequence[int], groups: int) -> None:
        """Count a sorted file of so many groups, of which those of some sizes are read."""
        reads = self._reads.setdefault(stage, _StageReads())
        reads.files += 1
        reads.groups += len(sizes)
        reads.groups_skipped += groups - len(sizes)
        reads.rows += sum(sizes)

    def _charge(self, rows: pa.Table) -> None:
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
    return with_final_ids(rows, [(name, ids_in(table.ids[name], part)) for name in temporary])


@lru_cache(maxsize=32)
def _metadata(path: str) -> pq.FileMetaData:
    """Return the metadata of a file, which never changes."""
    with open_file(Path(path)) as source:
        return pq.read_metadata(source)


def _sizes_read(metadata: pq.FileMetaData, schema: pa.Schema, where: RowFilter) -> list[int]:
    """Return the sizes of the row groups whose statistics leave rows that match."""
    restricted = [
        (index, where.ranges(name), schema.field(name).type)
        for index, name in enumerate(metadata.schema.names)
        if where.ranges(name)
    ]
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return [
        group.num_rows
        for group in groups
        if all(_may_match(group.column(i), kind, ranges) for i, ranges, kind in restricted)
    ]


def _may_match(
    chunk: pq.ColumnChunkMetaData, kind: pa.DataType, ranges: Sequence[ValueRange]
) -> bool:
    statistics = chunk.statistics
    if statistics is None or not statistics.has_min_max:
        return True
    low, high = _bounds(statistics, kind)
    return all(values.meets(low, high) for values in ranges)


def _bounds(statistics: pq.Statistics, kind: pa.DataType) -> tuple[Plain, Plain]:
    """Return the least and greatest value, in the form of key parts."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return statistics.min_raw, statistics.max_raw
    return statistics.min, statistics.max


def _empty(schema: pa.Schema) -> pa.Table:
    return schema.empty_table()
