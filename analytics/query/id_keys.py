"""The ID-keys of a query: maps keys to ids and back, at the query's state.

Assigned ids are in the ID-key's table, which passes through the stages like other tables. Ids of
later uploads are computed here exactly as the pipeline will assign them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from analytics.query.files import IdPlan, Part
from analytics.query.filters import near_values
from analytics.query.scan import ScanReader
from analytics.rows.compound import decode_keys
from analytics.rows.ids import IdAssignment, IdLookup, assign, read_keys
from analytics.schema import BY_ID, OP, TYPES, AnalyticsTable
from analytics.table_definitions import ID, KEY

NO_ID = -1


class IdKey:
    """One ID-key at one state."""

    def __init__(self, table: AnalyticsTable, plan: IdPlan, reader: ScanReader) -> None:
        self._table = table
        self._plan = plan
        self._reader = reader
        self._kind = TYPES[table.columns[KEY]]
        self._parts = {n: TYPES[k] for n, k in table.columns.items() if n not in (KEY, ID)}

    def unstored_rows(self) -> pa.Table:
        """Return rows of the ID-key's table that are not in its files yet."""
        return self._assigned.operations(self._table)

    def ids_in(self, part: Part) -> pa.Array:
        """Return the final ids of one part's temporary ids; empty if it has no keys."""
        begin = 0
        for keys in self._plan.lists:
            if keys.part == part:
                return self._assigned.ids.slice(begin, keys.rows)
            begin += keys.rows
        return pa.array([], pa.int64())

    def ids_of(self, keys: Collection[int | str]) -> dict[int | str, int]:
        """Return the ids of keys; `NO_ID` for unknown keys."""
        wanted_keys = pa.array(list(keys), self._kind)
        ids = IdLookup(self._entries(KEY, wanted_keys)).ids_of(wanted_keys)
        return dict(zip(wanted_keys.to_pylist(), pc.fill_null(ids, NO_ID).to_pylist(), strict=True))

    def keys_of(self, ids: pa.Array) -> pa.Array:
        """Return the keys of ids; null for null."""
        encoded = ids.dictionary_encode()
        wanted_ids = encoded.dictionary
        keys = IdLookup(self._entries(ID, wanted_ids)).keys_of(wanted_ids, self._kind)
        return (decode_keys(keys, self._parts) if self._parts else keys).take(encoded.indices)

    @cached_property
    def _assigned(self) -> IdAssignment:
        lists = self._plan.lists
        keys = read_keys([file.path for file in lists], self._table.columns[KEY])
        unique = pc.unique(keys)
        return assign(keys, IdLookup(self._stored_entries(KEY, unique)), self._plan.count)

    def _entries(self, by: str, values: pa.Array) -> Iterator[pa.Table]:
        yield from self._stored_entries(by, values)
        if self._plan.lists:
            yield self.unstored_rows()

    def _stored_entries(self, by: str, values: pa.Array) -> Iterator[pa.Table]:
        """Yield rows from the files that include those of the wanted keys or ids."""
        if not len(values):
            return
        where = near_values(by, values)
        view = self._table.view(BY_ID if by == ID else "")
        for file in self._plan.authority:
            if file.view == view.name:
                yield self._reader.authority([file], self._table, view, [KEY, ID], where)
        for file in self._plan.later:
            yield self._reader.later([file], self._table, [KEY, ID], where).drop_columns([OP])


IdKeys = Mapping[str, IdKey]


def with_keys(rows: pa.Table, ids: Mapping[str, str], id_keys: IdKeys) -> pa.Table:
    """Return rows with ids replaced by keys. `ids` maps columns to their ID-keys."""
    for index, name in enumerate(rows.column_names):
        if name in ids:
            keys = id_keys[ids[name]].keys_of(rows[name].combine_chunks())
            rows = rows.set_column(index, name, keys)
    return rows
