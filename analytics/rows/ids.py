"""Assigns ids to keys: 0, 1, 2, … in the order in which keys first occur, over all uploads.

Uploads are numbered and each lists its keys, so ids are the same wherever they are computed: by the
stage that assigns them, by its repetition after a crash, and by a query that does not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.rows.compound import decode_keys
from analytics.rows.file_store import StoredPath, open_file
from analytics.schema import IDS_COLUMN, KEYS_COLUMN, TYPES, AnalyticsTable
from analytics.table_definitions import ID, KEY


@dataclass(frozen=True, slots=True)
class IdAssignment:
    """The ids assigned to lists of keys."""

    #: The id of each entry of the lists, in order.
    ids: pa.Array
    #: Keys that had no id, in the order of their new ids. The first of these is `first`.
    new_keys: pa.Array
    first: int

    def operations(self, table: AnalyticsTable) -> pa.Table:
        """Return the new keys as rows of their ID-key's table."""
        count = len(self.new_keys)
        ids = pa.array(np.arange(self.first, self.first + count, dtype=np.int64))
        masks = pa.repeat(pa.scalar(table.inserted, pa.int64()), count)
        kinds = {n: table.arrow.field(n).type for n in table.columns if n not in (KEY, ID)}
        parts = decode_keys(self.new_keys, kinds).flatten() if kinds else []
        return pa.Table.from_arrays([self.new_keys, ids, *parts, masks], schema=table.stored)


def assign(keys: pa.Array, lookup: IdLookup, first: int) -> IdAssignment:
    """Assign ids to the keys that have none, from `first` on."""
    encoded = keys.dictionary_encode()
    unique = encoded.dictionary
    known_ids = lookup.ids_of(unique)
    is_new = known_ids.is_null()
    new_counts = pc.cumulative_sum(is_new.cast(pa.int64()))
    ids = pc.if_else(is_new, pc.add(new_counts, first - 1), known_ids)
    return IdAssignment(ids.take(encoded.indices), unique.filter(is_new), first)


class IdLookup:
    """Keys and their ids, read from tables on each lookup."""

    def __init__(self, parts: Iterable[pa.Table]) -> None:
        self._parts = parts

    def ids_of(self, keys: pa.Array) -> pa.Array:
        """Return the ids of distinct keys; null for a key without one."""
        return self._look_up(keys, KEY, ID)

    def keys_of(self, ids: pa.Array, kind: pa.DataType) -> pa.Array:
        """Return the keys of distinct ids."""
        return self._look_up(ids, ID, KEY, kind)

    def _look_up(
        self, searched: pa.Array, by: str, column: str, kind: pa.DataType | None = None
    ) -> pa.Array:
        matches = pa.nulls(len(searched), kind or pa.int64())
        positions = pa.array(np.arange(len(searched), dtype=np.int32))
        for part in self._parts:
            # There are usually fewer searched values than entries, so hash those.
            indexes = pc.index_in(part[by], value_set=searched).combine_chunks()
            matched = indexes.is_valid()
            if not pc.any(matched).as_py():
                continue
            matched_values = part[column].combine_chunks().filter(matched)
            order = pc.index_in(positions, value_set=indexes.filter(matched))
            matches = pc.coalesce(matched_values.take(order), matches)
        return matches


def read_keys(paths: Sequence[StoredPath], kind: str) -> pa.Array:
    """Return the concatenated entries of lists of keys."""
    return _column(paths, KEYS_COLUMN, TYPES[kind])


def write_ids(path: Path, ids: pa.Array) -> None:
    """Write the ids of the entries of lists."""
    rows = pa.table({IDS_COLUMN: ids})
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(str(path), rows.schema, options=options) as writer:
        writer.write_table(rows)


def read_ids(path: StoredPath) -> pa.Array:
    """Return the ids of the entries of lists."""
    return _column([path], IDS_COLUMN, pa.int64())


def with_final_ids(rows: pa.Table, columns: Iterable[tuple[str, pa.Array]]) -> pa.Table:
    """Return rows with ids instead of temporary ids, which are indexes into arrays of ids."""
    for name, ids in columns:
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, rows.schema.field(name), _take(ids, rows[name]))
    return rows


def _take(ids: pa.Array, indexes: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([ids.take(chunk) for chunk in indexes.chunks], pa.int64())


def _column(paths: Sequence[StoredPath], name: str, kind: pa.DataType) -> pa.Array:
    chunks: list[pa.Array] = []
    for path in paths:
        with open_file(path) as source, pa.ipc.open_file(source) as file:
            chunks += file.read_all()[name].chunks
    return pa.chunked_array(chunks, kind).combine_chunks()
