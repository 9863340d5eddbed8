"""Sorted files: Parquet, with an index of the key with which each row group begins.

Parquet's statistics contain the minimum of each column of a row group, which is not the row group's
first key. The index, in the file's footer, contains that. Merges are split into blocks by it.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.rows.durable import durable_file
from analytics.rows.file_store import StoredPath, is_remote, open_file, size_of
from analytics.rows.keys import Key, from_plain, insertion_point, key_at, to_plain

_STARTS = b"rillbase.starts"
#: Uncompressed size of a row group, the least that is read for a single row.
GROUP_BYTES = 2 * 1024 * 1024
MIN_GROUP_ROWS, MAX_GROUP_ROWS = 256, 131_072


@dataclass(frozen=True, slots=True)
class SortedFileInfo:
    """The metadata of a finished sorted file."""

    path: StoredPath
    rows: int
    bytes: int
    lowest: Key
    highest: Key


def write_sorted(
    path: StoredPath, schema: pa.Schema, key: Sequence[str], blocks: Iterable[pa.Table]
) -> SortedFileInfo | None:
    """Write blocks of rows, sorted within and across blocks. Without rows, write no file."""
    starts: list[Key] = []
    highest: Key | None = None
    count = 0
    with durable_file(path) as local_path, _writer(local_path, schema) as writer:
        for block in blocks:
            if block.num_rows == 0:
                continue
            size = _group_rows(block)
            for begin in range(0, block.num_rows, size):
                starts.append(key_at(block, key, begin))
                writer.write_table(block.slice(begin, size), row_group_size=size)
            highest = key_at(block, key, block.num_rows - 1)
            count += block.num_rows
        writer.add_key_value_metadata(
            {_STARTS: json.dumps([to_plain(start) for start in starts]).encode()}
        )
    if highest is None:
        path.unlink()
        return None
    return SortedFileInfo(path, count, size_of(path), starts[0], highest)


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    # Numbers rarely repeat within a row group: with dictionaries, writing is half as fast, and
    # reading a third.
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=texts,
        write_page_index=True,
    )


def _group_rows(block: pa.Table) -> int:
    rows = block.num_rows * GROUP_BYTES // max(block.nbytes, 1)
    return int(min(max(rows, MIN_GROUP_ROWS), MAX_GROUP_ROWS))


class SortedFile:
    """Reads a sorted file by ranges of keys."""

    def __init__(self, path: StoredPath, key: Sequence[str]) -> None:
        # Remote files are read in few large parts.
        self._file = pq.ParquetFile(open_file(path), pre_buffer=is_remote(path))
        self._key = key
        starts = (self._file.metadata.metadata or {})[_STARTS]
        self.starts: list[Key] = [from_plain(start) for start in json.loads(starts)]

    @property
    def schema(self) -> pa.Schema:
        return self._file.schema_arrow

    def group_bytes(self, group: int) -> int:
        """Return the size of a row group in memory."""
        return int(self._file.metadata.row_group(group).total_byte_size)

    def holds(self, low: Key | None, high: Key | None) -> bool:
        """Return whether there is a row from `low` inclusive to `high` exclusive."""
        groups = self._groups(low, high)
        if any(low is None or self.starts[group] >= low for group in groups):
            # The group's first row is in the range.
            return True
        return bool(self._read(groups, low, high, list(self._key)).num_rows)

    def read(self, low: Key | None, high: Key | None) -> pa.Table:
        """Return the rows from `low` inclusive to `high` exclusive."""
        return self._read(self._groups(low, high), low, high, None)

    def _groups(self, low: Key | None, high: Key | None) -> list[int]:
        first = 0 if low is None else max(bisect_right(self.starts, low) - 1, 0)
        last = len(self.starts) if high is None else bisect_left(self.starts, high)
        return list(range(first, last))

    def _read(
        self, groups: list[int], low: Key | None, high: Key | None, columns: list[str] | None
    ) -> pa.Table:
        rows = self._file.read_row_groups(groups, columns=columns)
        begin = 0 if low is None else insertion_point(rows, self._key, low)
        end = rows.num_rows if high is None else insertion_point(rows, self._key, high)
        return rows.slice(begin, max(end - begin, 0))

    def close(self) -> None:
        self._file.close(force=True)
