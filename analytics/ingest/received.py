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
    body: Path, media_type: str, tables: Mapping[str, Table], named: Named, folder: Path
) -> list[Segment]:
    """Write what a body has. The segments are durable when this returns."""
    return write_segments(_READERS[media_type](body, tables, named), folder)


def write_segments(batches: Batches, folder: Path) -> list[Segment]:
    """Write batches to a segment for each table, all of them or none."""
    begun = _Begun(folder)
    try:
        with ExitStack() as files:
            begun.write(batches, files)
    except BaseException:
        remove(folder, [segment.path for segment in begun.segments(complete=False)])
        raise
    return begun.segments()


def remove(folder: Path, paths: Iterable[str]) -> None:
    """Remove segments that nobody was told of, or that nobody needs any more."""
    for path in paths:
        (folder / path).unlink(missing_ok=True)


class _Begun:
    """The files of one body."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tables: dict[str, tuple[SegmentWriter, Path]] = {}
        self._lists: dict[str, tuple[KeyList, Path]] = {}

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
        begun: list[tuple[str, str, SegmentWriter | KeyList, Path]] = []
        begun += [(name, "", *writing) for name, writing in self._tables.items()]
        begun += [("", name, *writing) for name, writing in self._lists.items()]
        for table, id_key, writer, path in begun:
            size = path.stat().st_size if complete else 0
            place = str(path.relative_to(self._folder))
            found.append(Segment(table, place, writer.rows, size, id_key))
        return found

    def _begin(self, table: Table, files: ExitStack, writers: ExitStack) -> None:
        path = self._path(files)
        self._tables[table.name] = (SegmentWriter(path, table), path)
        writers.callback(self._tables[table.name][0].close)
        for column, name in table.ids.items():
            if name not in self._lists:
                path = self._path(files)
                self._lists[name] = (KeyList(path, table.shown[column]), path)
                writers.callback(self._lists[name][0].close)

    def _path(self, files: ExitStack) -> Path:
        path = self._folder / "segments" / f"{uuid4().hex}.arrow"
        files.enter_context(written(path))
        return path


def _lines(
    body: Path, tables: Mapping[str, Table], named: Named
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    return read_lines(body, tables)


_READERS: Mapping[
    str,
    Callable[[Path, Mapping[str, Table], Named], Iterator[tuple[Table, pa.RecordBatch]]],
] = {NDJSON: _lines, ARROW: read_arrow, PARQUET: read_parquet}
