"""Simulates a full disk for this process by limiting the size of its files."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full_disk(allowed_bytes: int) -> Iterator[None]:
    """Limit the size of files for the duration of a block.

    Modules imported meanwhile are not cached as bytecode: Python does not notice that it has
    written only part of a file, which could then never be imported.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    writes_none = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (allowed_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = writes_none
