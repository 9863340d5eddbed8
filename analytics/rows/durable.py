"""Writes files durably: a file is complete and synced or uploaded, or does not exist.

Files are referenced only once they are durable. Leftovers of a crash are unreferenced, and removed
by age.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING
from uuid import uuid4

from foundation import write_stop
from foundation.errors import StorageFull
from foundation.failures import STORAGE_RETRY_AFTER_S, is_disk_full

if TYPE_CHECKING:
    from analytics.rows.file_store import StoredPath


@contextmanager
def durable_file(path: StoredPath) -> Iterator[Path]:
    """Store the yielded file, which the block writes, as `path`; on error remove it.

    A file and its folder's entry are synced; an object is written to the disk first, and then
    uploaded.
    """
    if isinstance(path, Path):
        with _synced(path):
            yield path
        return
    local_path = local_folder() / f"{uuid4().hex}-{path.name}"
    try:
        with storing():
            yield local_path
            path.put_file(local_path)
    finally:
        local_path.unlink(missing_ok=True)


def local_folder() -> Path:
    """Return the folder for files that are to be uploaded to a store."""
    folder = Path(gettempdir()) / "rillbase-analytics"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextmanager
def _synced(path: Path) -> Iterator[None]:
    try:
        with storing():
            path.parent.mkdir(parents=True, exist_ok=True)
            yield
            sync(path)
            sync(path.parent)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def storing() -> Iterator[None]:
    """Raise `StorageFull` if the block runs out of disk space."""
    if write_stop.in_force():
        raise storage_full()
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise storage_full() from error
        raise


def storage_full() -> StorageFull:
    return StorageFull(
        "The disk of the analytics tables is full. Nothing was stored.",
        headers={"Retry-After": str(STORAGE_RETRY_AFTER_S)},
    )


def sync(path: Path) -> None:
    """Wait until a file, or a folder's entries, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
