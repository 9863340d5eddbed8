"""Writes batches of operations as segments, one for each table and each ID-key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from analytics.ingest.temporary_ids import KeyList, with_ids
from analytics.rows.segment_writer import SegmentWriter
from analytics.schema import AnalyticsTable

Batches: TypeAlias = Iterable[tuple[AnalyticsTable, pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class SegmentContent:
    """The content of a segment: rows of a table, or keys of an ID-key; the other name is empty."""

    table: str = ""
    id_key: str = ""


#: Opens the file for a content.
Opener: TypeAlias = Callable[[SegmentContent], pa.NativeFile]


def write_files(batches: Batches, opener: Opener) -> dict[SegmentContent, int]:
    """Write batches to files, opened on demand; return the row count of each."""
    files = _BodyFiles(opener)
    with ExitStack() as closing:
        for table, batch in batches:
            if batch.num_rows:
                files.write(table, batch, closing)
    return files.rows()


class _BodyFiles:
    """The files of one body."""

    def __init__(self, opener: Opener) -> None:
        self._open = opener
        self._tables: dict[str, SegmentWriter] = {}
        self._lists: dict[str, KeyList] = {}

    def write(self, table: AnalyticsTable, batch: pa.RecordBatch, closing: ExitStack) -> None:
        """Write a batch. Files that this opens are closed by `closing`."""
        if table.name not in self._tables:
            self._begin(table, closing)
        lists = {name: self._lists[name] for name in table.ids.values()}
        self._tables[table.name].write(with_ids(table, batch, lists))

    def rows(self) -> dict[SegmentContent, int]:
        counts = {SegmentContent(table=name): writer.rows for name, writer in self._tables.items()}
        return counts | {
            SegmentContent(id_key=name): keys.rows for name, keys in self._lists.items()
        }

    def _begin(self, table: AnalyticsTable, closing: ExitStack) -> None:
        writer = SegmentWriter(self._open(SegmentContent(table=table.name)), table)
        self._tables[table.name] = writer
        closing.callback(writer.close)
        for column, name in table.ids.items():
            if name not in self._lists:
                keys = KeyList(self._open(SegmentContent(id_key=name)), table.shown[column])
                self._lists[name] = keys
                closing.callback(keys.close)
