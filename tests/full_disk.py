"""What a full disk looks like to this process: no file of it may grow beyond some bytes."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full_disk(allowed_bytes: int) -> Iterator[None]:
    """Bound files' sizes for a while.

    Modules that are imported meanwhile are not kept compiled: Python does not notice that it has
    written only a part, and nobody could import them any more.
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
