"""Where files are kept: in a folder, or as objects of a store (`analytics.rows.objects`)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from pyarrow import fs

from analytics.places import SCHEME
from analytics.rows.objects import ObjectPath, objects

StoredPath: TypeAlias = Path | ObjectPath

_FILES = fs.LocalFileSystem(use_mmap=True)


def stored_path(text: str) -> StoredPath:
    """Parse a stored path."""
    return ObjectPath.of(text) if text.startswith(SCHEME) else Path(text)


def is_far(path: StoredPath) -> bool:
    """Return whether access to it goes over the network, at a cost."""
    return isinstance(path, ObjectPath)


def below(folder: StoredPath, path: StoredPath) -> str:
    """Return a path relative to a folder."""
    if isinstance(path, ObjectPath) and isinstance(folder, ObjectPath):
        return path.relative_to(folder)
    return str(Path(str(path)).relative_to(str(folder)))


def opened(path: StoredPath) -> pa.NativeFile:
    """Open a file for random access; raise `FileNotFoundError` if it does not exist."""
    return path.open() if isinstance(path, ObjectPath) else pa.memory_map(str(path))


def filesystem_of(path: StoredPath) -> tuple[fs.FileSystem, str]:
    """Return a path as Arrow's readers of many files take it."""
    return (objects(), path.key) if isinstance(path, ObjectPath) else (_FILES, str(path))


def size_of(path: StoredPath) -> int:
    return path.size() if isinstance(path, ObjectPath) else path.stat().st_size


def read_text(path: StoredPath) -> str:
    """Return a small file; raise `FileNotFoundError` where there is none."""
    if isinstance(path, Path):
        return path.read_text()
    with path.open() as file:
        return bytes(file.read()).decode()


def write_text(path: StoredPath, text: str) -> None:
    """Write a small file, as a whole or not at all. It is not synced."""
    if isinstance(path, ObjectPath):
        path.put(pa.BufferReader(text.encode()))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beginning = path.with_suffix(f"{path.suffix}.begun")
    beginning.write_text(text)
    beginning.replace(path)


def files_in(folder: StoredPath) -> Iterator[tuple[StoredPath, float]]:
    """Yield the files of a folder, recursively, and when each was written."""
    if isinstance(folder, ObjectPath):
        yield from folder.below()
        return
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                yield path, path.stat().st_mtime
        except FileNotFoundError:
            continue


def remove_folder(folder: StoredPath) -> None:
    """Remove a folder with all that it holds, if there is one."""
    if isinstance(folder, ObjectPath):
        for path, _ in folder.below():
            path.unlink(missing_ok=True)
    elif folder.is_dir():
        shutil.rmtree(folder, onerror=_unless_gone)


def _unless_gone(
    _: object, __: str, raised: tuple[type[BaseException], BaseException, object]
) -> None:
    """Ignore that another process removes the same folder."""
    if not isinstance(raised[1], FileNotFoundError):
        raise raised[1]
