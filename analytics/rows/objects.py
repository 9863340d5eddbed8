"""Paths of objects in an S3-compatible store, with the part of the file API used here.

Credentials, region and address of the store come from the variables that Amazon's tools use:
`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from foundation.environment import OBJECT_STORE_SCHEME
from foundation.errors import Unavailable

logger = logging.getLogger(__name__)

_PART_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, order=True)
class ObjectPath:
    """The bucket and the key, joined by a slash."""

    key: str

    @classmethod
    def of(cls, url: str) -> ObjectPath:
        return cls(url.removeprefix(OBJECT_STORE_SCHEME).strip("/"))

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(f"{self.key}/{name}")

    def __str__(self) -> str:
        return OBJECT_STORE_SCHEME + self.key

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        return ObjectPath(self.key.rpartition("/")[0])

    def relative_to(self, other: ObjectPath) -> str:
        return self.key.removeprefix(f"{other.key}/")

    def as_uri(self) -> str:
        return str(self)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove the object."""
        try:
            with _as_unavailable():
                objects().delete_file(self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def size(self) -> int:
        with _as_unavailable():
            return int(objects().get_file_info(self.key).size)

    def open(self) -> pa.NativeFile:
        """Open it for random access; raise `FileNotFoundError` if it does not exist."""
        with _as_unavailable():
            return objects().open_input_file(self.key)

    def put(self, content: pa.NativeFile) -> None:
        """Write the object atomically."""
        with _as_unavailable(), objects().open_output_stream(self.key) as sink:
            while part := content.read(_PART_BYTES):
                sink.write(part)

    def put_file(self, path: Path) -> None:
        """Write the contents of a file to the object."""
        with pa.memory_map(str(path)) as content:
            self.put(content)

    def walk(self) -> Iterator[tuple[ObjectPath, float]]:
        """Yield all objects below this key, and when each was written."""
        selector = fs.FileSelector(self.key, recursive=True, allow_not_found=True)
        with _as_unavailable():
            infos = objects().get_file_info(selector)
        for info in infos:
            if info.type is fs.FileType.File:
                yield ObjectPath(info.path), info.mtime.timestamp()


def endpoint() -> str | None:
    """Return the store's endpoint; None for Amazon's. Arrow does not read the variable."""
    return os.environ.get("AWS_ENDPOINT_URL") or None


@lru_cache(maxsize=1)
def objects() -> fs.S3FileSystem:
    return fs.S3FileSystem(endpoint_override=endpoint())


@contextmanager
def _as_unavailable() -> Iterator[None]:
    """Raise `Unavailable` if a store operation fails."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        # The error names buckets and addresses, which callers must not see.
        logger.warning("the store of analytics tables: %s", error)
        raise Unavailable("The object store of the analytics tables does not respond.") from error
