"""Decodes an upload. Runs only in worker processes of `foundation.sandbox`.

Counts, lengths and statistics in the body are never trusted: the kernel bounds the memory, CPU time
and open files of the process, and the decoded rows are counted.

The request contains the dataset's definition and the role of each open file: the body, and one
output file for each possible segment. The result contains the number of rows of each segment, or
what is wrong with the upload.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypedDict, cast

import pyarrow as pa

from analytics.ingest.columns import read_arrow, read_parquet
from analytics.ingest.csv_rows import read_csv
from analytics.ingest.file_columns import UploadTarget
from analytics.ingest.json_rows import read_items, read_rows
from analytics.ingest.lines import read_lines
from analytics.ingest.segment_files import Batches, SegmentContent, write_files
from analytics.media_types import ARROW, CSV, JSON, NDJSON, PARQUET
from analytics.schema import AnalyticsTable, tables_of
from documents.transfer.formats import read_format
from documents.transfer.parquet import arrow_setup
from foundation.errors import ApiError, StorageFull, UploadLimitExceeded
from foundation.json_types import JsonObject

arrow_setup.load()

_SINK_BYTES = 1024 * 1024
_MAX_DETAIL_CHARS = 1_000
_MAX_ERRORS = 100
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class DecodeRequest(TypedDict):
    """A request to decode a body."""

    definition: str
    media_type: str
    table: str | None
    op: str | None
    #: The parameters that describe the file.
    form: dict[str, str]
    #: Maximum bytes of the decoded columns.
    max_bytes: int
    #: The contents of each file after the first, which is the body: [table, ID-key].
    outputs: list[list[str]]


Reader: TypeAlias = Callable[[pa.Buffer, Mapping[str, AnalyticsTable], UploadTarget], Batches]


def decode(request: JsonObject, files: Sequence[int]) -> JsonObject:
    """Write the segments of a body. Return the rows of each output, or the problem."""
    arrow_setup.limit_threads()
    typed = cast("DecodeRequest", request)
    body, *outputs = files
    try:
        rows = _decode(typed, _OpenFiles(body, dict(zip(_contents(typed), outputs, strict=True))))
    except ApiError as error:
        return {"problem": _problem(error)}
    return {"rows": [rows.get(content, 0) for content in _contents(typed)]}


@dataclass(frozen=True, slots=True)
class _OpenFiles:
    """The worker's open files."""

    body: int
    outputs: Mapping[SegmentContent, int]

    def read(self) -> pa.Buffer:
        """Return the body, memory-mapped."""
        if os.fstat(self.body).st_size == 0:
            return pa.py_buffer(b"")
        return pa.py_buffer(mmap.mmap(self.body, 0, prot=mmap.PROT_READ))

    def open(self, content: SegmentContent) -> pa.NativeFile:
        return pa.PythonFile(os.fdopen(self.outputs[content], "wb", _SINK_BYTES), mode="w")


def _contents(request: DecodeRequest) -> list[SegmentContent]:
    return [SegmentContent(table, id_key) for table, id_key in request["outputs"]]


def _decode(request: DecodeRequest, files: _OpenFiles) -> dict[SegmentContent, int]:
    tables = {n: t for n, t in tables_of(request["definition"]).items() if not t.is_id_key}
    read = _READERS[request["media_type"]]
    form = read_format(request["media_type"], request["form"])
    batches = read(files.read(), tables, UploadTarget(request["table"], request["op"], form))
    try:
        return write_files(_bounded(batches, request["max_bytes"]), files.open)
    except OSError as error:
        if error.errno in _DISK_FULL:
            raise StorageFull from error
        raise


def _bounded(batches: Batches, max_bytes: int) -> Iterator[tuple[AnalyticsTable, pa.RecordBatch]]:
    total = 0
    for table, batch in batches:
        total += batch.nbytes
        if total > max_bytes:
            detail = (
                f"The decoded rows have more than {max_bytes} bytes, which is too much for the "
                "size of the upload."
            )
            raise UploadLimitExceeded(detail)
        yield table, batch


def _problem(refused: ApiError) -> JsonObject:
    errors = [
        {"pointer": error.pointer, "code": error.code, "detail": error.detail[:_MAX_DETAIL_CHARS]}
        for error in refused.errors[:_MAX_ERRORS]
    ]
    return {
        "code": refused.code,
        "detail": refused.detail[:_MAX_DETAIL_CHARS],
        "errors": cast("list[object]", errors),  # type: ignore[dict-item]
    }


def _lines(body: pa.Buffer, tables: Mapping[str, AnalyticsTable], named: UploadTarget) -> Batches:
    """Read lines that name their tables, or rows of one table if the caller maps their columns."""
    return (
        read_lines(body, tables) if named.form.columns is None else read_rows(body, tables, named)
    )


_READERS: Mapping[str, Reader] = {
    NDJSON: _lines,
    JSON: read_items,
    CSV: read_csv,
    ARROW: read_arrow,
    PARQUET: read_parquet,
}
