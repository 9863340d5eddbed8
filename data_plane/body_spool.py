"""Spools a request body to disk, in little memory, whatever its size.

A body is decoded only when complete: Parquet is read from its end, and an incomplete body must have
no effect. The copy is not synced.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

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
    parts: AsyncIterator[bytes], folder: Path, storing: Callable[[], AbstractContextManager[None]]
) -> AsyncIterator[SpooledBody]:
    """Yield a file in `folder` with the complete body. The file is deleted when the block ends.

    Each write is inside `storing`, which may turn its errors into errors of the API.
    """
    path = folder / f"{uuid4().hex}.body"

    def append(chunk: bytearray) -> None:
        digest.update(chunk)
        with storing(), path.open("ab") as file:
            file.write(chunk)

    try:
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        chunk, digest, size = bytearray(), hashlib.sha256(), 0
        async for part in parts:
            chunk += part
            size += len(part)
            if len(chunk) >= _CHUNK_BYTES:
                await asyncio.to_thread(append, chunk)
                chunk = bytearray()
        await asyncio.to_thread(append, chunk)
        yield SpooledBody(path, size, digest.digest())
    finally:
        await asyncio.to_thread(path.unlink, missing_ok=True)
