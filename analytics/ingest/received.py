"""A body becomes segments, one for each table that it has rows of, or nothing is left of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from analytics.ingest.columns import Named, read_arrow, read_parquet
from analytics.ingest.lines import read_lines
from analytics.ingest.temporary_ids import KeyList, with_ids
from analytics.media_types import ARROW, NDJSON, PARQUET
from analytics.rows.durable import written
from analytics.rows.segment import SegmentWriter
from analytics.rows.stored import StoredPath, below, size_of
from analytics.schema import Table

Batches = Iterable[tuple[Table, pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Segment:
    """Operations on one table that are on the disk, and that nobody sees yet.

    Or the keys of one ID-key that these operations have.
    """

    table: str
    #: Below the dataset's folder.
    path: str
    rows: int
    bytes: int
    id_key: str = ""


def receive(
    body: Path, media_type: str, tables: Mapping[str, Table], named: Named, folder: StoredPath
) -> list[Segment]:
    """Write what a body has. The segments are durable when this returns."""
    return write_segments(_READERS[media_type](body, tables, named), folder)


def write_segments(batches: Batches, folder: StoredPath) -> list[Segment]:
    """Write batches to a segment for each table, all of them or none."""
    begun = _Begun(folder)
    try:
        with ExitStack() as files:
            begun.write(batches, files)
    except BaseException:
        remove(folder, [segment.path for segment in begun.segments(complete=False)])
        raise
    return begun.segments()


def remove(folder: StoredPath, paths: Iterable[str]) -> None:
    """Remove segments that nobody was told of, or that nobody needs any more."""
    for path in paths:
        (folder / path).unlink(missing_ok=True)


class _Begun:
    """The files of one body."""

    def __init__(self, folder: StoredPath) -> None:
        self._folder = folder
        self._tables: dict[str, tuple[SegmentWriter, StoredPath]] = {}
        self._lists: dict[str, tuple[KeyList, StoredPath]] = {}

    def write(self, batches: Batches, files: ExitStack) -> None:
        """Write batches, and complete each file before `files` syncs it."""
        with ExitStack() as writers:
            for table, batch in batches:
                if batch.num_rows == 0:
                    continue
                if table.name not in self._tables:
                    self._begin(table, files, writers)
                lists = {name: self._lists[name][0] for name in table.ids.values()}
                self._tables[table.name][0].write(with_ids(table, batch, lists))

    def segments(self, *, complete: bool = True) -> list[Segment]:
        """Return what was written. Of files that are not complete nobody knows the size."""
        found = []
        begun: list[tuple[str, str, SegmentWriter | KeyList, StoredPath]] = []
        begun += [(name, "", *writing) for name, writing in self._tables.items()]
        begun += [("", name, *writing) for name, writing in self._lists.items()]
        for table, id_key, writer, path in begun:
            size = size_of(path) if complete else 0
            place = below(self._folder, path)
            found.append(Segment(table, place, writer.rows, size, id_key))
        return found

    def _begin(self, table: Table, files: ExitStack, writers: ExitStack) -> None:
        path, here = self._path(files)
        self._tables[table.name] = (SegmentWriter(here, table), path)
        writers.callback(self._tables[table.name][0].close)
        for column, name in table.ids.items():
            if name not in self._lists:
                path, here = self._path(files)
                self._lists[name] = (KeyList(here, table.shown[column]), path)
                writers.callback(self._lists[name][0].close)

    def _path(self, files: ExitStack) -> tuple[StoredPath, Path]:
        """Return where a new file will be, and where it is written."""
        path = self._folder / "segments" / f"{uuid4().hex}.arrow"
        return path, files.enter_context(written(path))


def _lines(
    body: Path, tables: Mapping[str, Table], named: Named
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    return read_lines(body, tables)


_READERS: Mapping[
    str,
    Callable[[Path, Mapping[str, Table], Named], Iterator[tuple[Table, pa.RecordBatch]]],
] = {NDJSON: _lines, ARROW: read_arrow, PARQUET: read_parquet}
