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
from analytics.rows.durable import written
from analytics.rows.segment import SegmentWriter
from analytics.schema import Table

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
MEDIA_TYPES = (NDJSON, ARROW, PARQUET)

Batches = Iterable[tuple[Table, pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Segment:
    """Operations on one table that are on the disk, and that nobody sees yet."""

    table: str
    #: Below the dataset's folder.
    path: str
    rows: int
    bytes: int


def receive(
    body: Path, media_type: str, tables: Mapping[str, Table], named: Named, folder: Path
) -> list[Segment]:
    """Write what a body has. The segments are durable when this returns."""
    return write_segments(_READERS[media_type](body, tables, named), folder)


def write_segments(batches: Batches, folder: Path) -> list[Segment]:
    """Write batches to a segment for each table, all of them or none."""
    begun: dict[str, tuple[SegmentWriter, Path]] = {}
    try:
        with ExitStack() as files:
            _write(batches, folder, begun, files)
    except BaseException:
        remove(folder, [str(path.relative_to(folder)) for _, path in begun.values()])
        raise
    return [
        Segment(name, str(path.relative_to(folder)), writer.rows, path.stat().st_size)
        for name, (writer, path) in begun.items()
    ]


def remove(folder: Path, paths: Iterable[str]) -> None:
    """Remove segments that nobody was told of, or that nobody needs any more."""
    for path in paths:
        (folder / path).unlink(missing_ok=True)


def _write(
    batches: Batches, folder: Path, begun: dict[str, tuple[SegmentWriter, Path]], files: ExitStack
) -> None:
    """Write batches, and complete each file before `files` syncs it."""
    with ExitStack() as writers:
        for table, batch in batches:
            if batch.num_rows == 0:
                continue
            if table.name not in begun:
                path = folder / "segments" / f"{uuid4().hex}.arrow"
                files.enter_context(written(path))
                begun[table.name] = (SegmentWriter(path, table), path)
                writers.callback(begun[table.name][0].close)
            begun[table.name][0].write(batch)


def _lines(
    body: Path, tables: Mapping[str, Table], named: Named
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    return read_lines(body, tables)


_READERS: Mapping[
    str,
    Callable[[Path, Mapping[str, Table], Named], Iterator[tuple[Table, pa.RecordBatch]]],
] = {NDJSON: _lines, ARROW: read_arrow, PARQUET: read_parquet}
