"""Prepares a process of `foundation.sandbox` for Arrow.

A worker cannot open files, so everything that Arrow would import lazily is imported in advance.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import cast

import pyarrow as pa

_MAX_THREADS = 4
_IO_THREADS = 2


class _WithoutPandas:
    """Makes `import pandas` fail: Arrow would import it to create its first scalar."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def load() -> None:
    """Trigger lazy imports. Call it when the decoder's module is loaded."""
    sys.meta_path.insert(0, cast("MetaPathFinder", _WithoutPandas()))
    pa.scalar("")
    import_module("numpy.ma")
    import_module("pyarrow.compute")


def limit_threads() -> None:
    """Bound the threads of this worker."""
    pa.set_cpu_count(min(os.cpu_count() or 1, _MAX_THREADS))
    pa.set_io_thread_count(_IO_THREADS)
