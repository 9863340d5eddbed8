"""A file is complete and on the disk, or it is not there.

Nobody is told of a file before it is. A file that was begun and not finished has a name that
nobody knows; what a crash leaves of it is found by its age.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foundation.errors import StorageFull

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Let a block write a file; sync it with its folder's entry, or remove it if that fails."""
    try:
        with storing():
            path.parent.mkdir(parents=True, exist_ok=True)
            yield path
            sync(path)
            sync(path.parent)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def storing() -> Iterator[None]:
    """Raise `StorageFull` where the block finds no room on the disk."""
    try:
        yield
    except OSError as failed:
        if failed.errno in _FULL:
            raise StorageFull from failed
        raise


def sync(path: Path) -> None:
    """Wait until a file, or a folder's entries, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
