"""Which id a key has: its place in the order in which keys came first, over all uploads.

Uploads are numbered and the keys of each lie in a list, so the order is the same wherever it is
computed: by the stage that assigns ids, by the same stage again after it was killed, and by a query
that cannot wait for it. Ids are 0, 1, 2, … without gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.rows.compound import decoded
from analytics.rows.file_store import StoredPath, opened
from analytics.schema import IDS_COLUMN, KEYS_COLUMN, TYPES, AnalyticsTable
from analytics.table_definitions import ID, KEY


@dataclass(frozen=True, slots=True)
class IdAssignment:
    """The ids assigned to lists of keys."""

    #: The id of each of the lists' entries, in their order.
    ids: pa.Array
    #: Keys that had no id, in the order of their new ids, which begin with `first`.
    new_keys: pa.Array
    first: int

    def operations(self, table: AnalyticsTable) -> pa.Table:
        """Return the new keys as rows of their ID-key's table."""
        count = len(self.new_keys)
        ids = pa.array(np.arange(self.first, self.first + count, dtype=np.int64))
        masks = pa.repeat(pa.scalar(table.inserted, pa.int64()), count)
        kinds = {n: table.arrow.field(n).type for n in table.columns if n not in (KEY, ID)}
        parts = decoded(self.new_keys, kinds).flatten() if kinds else []
        return pa.Table.from_arrays([self.new_keys, ids, *parts, masks], schema=table.stored)


def assign(keys: pa.Array, known: IdLookup, first: int) -> IdAssignment:
    """Assign ids to the keys that have none, from `first` on."""
    coded = keys.dictionary_encode()
    unique = coded.dictionary
    known_ids = known.ids_of(unique)
    is_new = known_ids.is_null()
    places = pc.cumulative_sum(is_new.cast(pa.int64()))
    ids = pc.if_else(is_new, pc.add(places, first - 1), known_ids)
    return IdAssignment(ids.take(coded.indices), unique.filter(is_new), first)


class IdLookup:
    """Keys and their ids, read from tables on each lookup."""

    def __init__(self, parts: Iterable[pa.Table]) -> None:
        self._parts = parts

    def ids_of(self, keys: pa.Array) -> pa.Array:
        """Return the id of each of some different keys, and null where it has none."""
        return self._matched(keys, KEY, ID)

    def keys_of(self, ids: pa.Array, kind: pa.DataType) -> pa.Array:
        """Return the key of each of some different ids."""
        return self._matched(ids, ID, KEY, kind)

    def _matched(
        self, sought: pa.Array, by: str, wanted: str, kind: pa.DataType | None = None
    ) -> pa.Array:
        matches = pa.nulls(len(sought), kind or pa.int64())
        positions = pa.array(np.arange(len(sought), dtype=np.int32))
        for part in self._parts:
            # There are usually fewer sought values, so those are hashed.
            places = pc.index_in(part[by], value_set=sought).combine_chunks()
            there = places.is_valid()
            if not pc.any(there).as_py():
                continue
            values = part[wanted].combine_chunks().filter(there)
            back = pc.index_in(positions, value_set=places.filter(there))
            matches = pc.coalesce(values.take(back), matches)
        return matches


def read_keys(paths: Sequence[StoredPath], kind: str) -> pa.Array:
    """Return the entries of lists of keys, one list after the other."""
    return _column(paths, KEYS_COLUMN, TYPES[kind])


def write_ids(path: Path, ids: pa.Array) -> None:
    """Write the ids of lists' entries."""
    rows = pa.table({IDS_COLUMN: ids})
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(str(path), rows.schema, options=options) as writer:
        writer.write_table(rows)


def read_ids(path: StoredPath) -> pa.Array:
    """Return the ids of lists' entries."""
    return _column([path], IDS_COLUMN, pa.int64())


def translated(rows: pa.Table, columns: Iterable[tuple[str, pa.Array]]) -> pa.Table:
    """Return rows with ids instead of temporary ids, which are indexes into arrays of ids."""
    for name, ids in columns:
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(name), _taken(ids, rows[name]))
    return rows


def _taken(ids: pa.Array, places: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([ids.take(chunk) for chunk in places.chunks], pa.int64())


def _column(paths: Sequence[StoredPath], name: str, kind: pa.DataType) -> pa.Array:
    chunks: list[pa.Array] = []
    for path in paths:
        with opened(path) as source, pa.ipc.open_file(source) as file:
            chunks += file.read_all()[name].chunks
    return pa.chunked_array(chunks, kind).combine_chunks()
