"""Documents as a Parquet file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from data_plane.file_workers import MIB, limits_for
from documents.transfer.parquet.parquet_workers import workers
from rillbase_native import Value

#: Encodings never make a file much larger than its documents; this is for headers and footer.
_FRAME_BYTES = 16 * MIB


async def parquet_file(tenant_id: UUID, documents: Sequence[Value]) -> bytes:
    """Return a Parquet file with a row for each document."""
    lines = b"".join(document.ejson(canonical=True) + b"\n" for document in documents)
    limits = limits_for(len(lines), 2 * len(lines) + _FRAME_BYTES)
    with TemporaryDirectory(prefix="rillbase-export-") as folder:
        source, output = Path(folder) / "documents", Path(folder) / "file"
        await asyncio.to_thread(source.write_bytes, lines)
        async with workers.turn(tenant_id):
            descriptors = [
                os.open(source, os.O_RDONLY),
                os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
            ]
            try:
                await workers.run({"task": "write"}, descriptors, limits)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
        return await asyncio.to_thread(output.read_bytes)
