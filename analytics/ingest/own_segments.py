"""Segments of rows that the installation generates, such as samples."""

from __future__ import annotations

from contextlib import ExitStack
from uuid import uuid4

import pyarrow as pa

from analytics.ingest.segment_files import Batches, SegmentContent, write_files
from analytics.ingest.segments import FOLDER, UploadSegment
from analytics.rows.durable import durable_file
from analytics.rows.file_store import StoredPath, size_of


def write_segments(batches: Batches, folder: StoredPath) -> list[UploadSegment]:
    """Write batches to durable segments, all or none."""
    paths: dict[SegmentContent, str] = {}
    with ExitStack() as files:

        def opened(content: SegmentContent) -> pa.NativeFile:
            paths[content] = f"{FOLDER}/{uuid4().hex}.arrow"
            local_path = files.enter_context(durable_file(folder / paths[content]))
            return pa.OSFile(str(local_path), "wb")

        rows = write_files(batches, opened)
    return [
        UploadSegment(c.table, paths[c], count, size_of(folder / paths[c]), c.id_key)
        for c, count in rows.items()
    ]
