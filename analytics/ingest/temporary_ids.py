"""Replaces received keys with temporary ids, which need no coordination.

A key's index in the list of a body's keys is its temporary id. The list is stored beside the body's
segments and may contain a key more than once. The final id of each key is determined once, when the
list passes through the pipeline; until then readers of the segments compute it
(`analytics.rows.ids`).
"""

from __future__ import annotations

import pyarrow as pa

from analytics.schema import KEYS_COLUMN, TYPES, AnalyticsTable


class KeyList:
    """Writes one body's keys of one ID-key to a file, which it closes at the end."""

    def __init__(self, sink: pa.NativeFile, kind: str) -> None:
        self._sink = sink
        self._schema = pa.schema([pa.field(KEYS_COLUMN, TYPES[kind], nullable=False)])
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pa.ipc.new_file(self._sink, self._schema, options=options)
        self.rows = 0

    def ids(self, keys: pa.Array) -> pa.Array:
        """Append keys to the list, and return their indexes; null where the key is null."""
        coded = keys.dictionary_encode()
        self._writer.write_batch(pa.record_batch([coded.dictionary], schema=self._schema))
        indexes = pa.compute.add(coded.indices.cast(pa.int64()), self.rows)
        self.rows += len(coded.dictionary)
        return indexes

    def close(self) -> None:
        try:
            self._writer.close()
        finally:
            self._sink.close()


def with_ids(
    table: AnalyticsTable, batch: pa.RecordBatch, lists: dict[str, KeyList]
) -> pa.RecordBatch:
    """Return a batch as it is stored: with ids instead of keys."""
    arrays = [
        lists[table.ids[name]].ids(column) if name in table.ids else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=table.stored)
