"""Spools a request body to disk, in little memory, whatever its size.

A body is decoded only when complete: Parquet is read from its end, and an incomplete body must have
no effect. The copy is not synced.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from analytics.rows.durable import local_folder, storing
from data_plane.http import RequestBody
from data_plane.lines import decoded
from foundation.environment import environment

if TYPE_CHECKING:
    from analytics.rows.file_store import StoredPath

_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SpooledBody:
    """A complete request body in a file."""

    path: Path
    size: int
    #: SHA-256, by which a repeated upload is recognized.
    digest: bytes


@asynccontextmanager
async def spooled(
    body: RequestBody, encoding: str, folder: StoredPath
) -> AsyncIterator[SpooledBody]:
    """Yield a file with the complete body. The file is deleted when the block ends."""
    place = folder / "incoming" if isinstance(folder, Path) else local_folder()
    path = place / f"{uuid4().hex}.body"
    try:
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        limit = environment().rillbase_import_max_bytes
        chunk, digest, size = bytearray(), hashlib.sha256(), 0
        async for part in decoded(body.parts(), encoding, limit):
            chunk += part
            size += len(part)
            if len(chunk) >= _CHUNK_BYTES:
                await asyncio.to_thread(_append, path, chunk, digest)
                chunk = bytearray()
        await asyncio.to_thread(_append, path, chunk, digest)
        yield SpooledBody(path, size, digest.digest())
    finally:
        await asyncio.to_thread(path.unlink, missing_ok=True)


def _append(path: Path, chunk: bytearray, digest: hashlib._Hash) -> None:
    digest.update(chunk)
    with storing(), path.open("ab") as file:
        file.write(chunk)
