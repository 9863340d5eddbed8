"""Writes segments. Separate from reading, since workers only write."""

from __future__ import annotations

import pyarrow as pa

from analytics.schema import AnalyticsTable

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class SegmentWriter:
    """Writes batches of operations to a file, which it closes at the end."""

    def __init__(self, sink: pa.NativeFile, table: AnalyticsTable) -> None:
        self._sink = sink
        self._writer = pa.ipc.new_file(self._sink, table.stored, options=_OPTIONS)
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)
        self.rows += batch.num_rows

    def close(self) -> None:
        try:
            self._writer.close()
        finally:
            self._sink.close()
