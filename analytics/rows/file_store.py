"""Access to stored files: in a folder, or as objects in a store (`analytics.rows.objects`)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from pyarrow import fs

from analytics.rows.objects import ObjectPath, objects
from foundation.environment import OBJECT_STORE_SCHEME

StoredPath: TypeAlias = Path | ObjectPath

_FILES = fs.LocalFileSystem(use_mmap=True)
_maps_files = True


def avoid_maps() -> None:
    """Read files without mapping them: a sandboxed worker's address space is its memory."""
    global _FILES, _maps_files
    _FILES, _maps_files = fs.LocalFileSystem(use_mmap=False), False


def stored_path(text: str) -> StoredPath:
    """Parse a stored path."""
    return ObjectPath.of(text) if text.startswith(OBJECT_STORE_SCHEME) else Path(text)


def is_remote(path: StoredPath) -> bool:
    """Return whether the path is in an object store, which charges for requests."""
    return isinstance(path, ObjectPath)


def relative_path(folder: StoredPath, path: StoredPath) -> str:
    """Return a path relative to a folder."""
    if isinstance(path, ObjectPath) and isinstance(folder, ObjectPath):
        return path.relative_to(folder)
    return str(Path(str(path)).relative_to(str(folder)))


def open_file(path: StoredPath) -> pa.NativeFile:
    """Open a file for random access; raise `FileNotFoundError` if it does not exist."""
    if isinstance(path, ObjectPath):
        return path.open()
    return pa.memory_map(str(path)) if _maps_files else pa.OSFile(str(path))


def filesystem_of(path: StoredPath) -> tuple[fs.FileSystem, str]:
    """Return the Arrow filesystem of a path, and the path in it."""
    return (objects(), path.key) if isinstance(path, ObjectPath) else (_FILES, str(path))


def size_of(path: StoredPath) -> int:
    return path.size() if isinstance(path, ObjectPath) else path.stat().st_size


def read_text(path: StoredPath) -> str:
    """Return the text of a small file, or raise `FileNotFoundError`."""
    if isinstance(path, Path):
        return path.read_text()
    with path.open() as file:
        return bytes(file.read()).decode()


def write_text(path: StoredPath, text: str) -> None:
    """Write a small file atomically. It is not synced."""
    if isinstance(path, ObjectPath):
        path.put(pa.BufferReader(text.encode()))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f"{path.suffix}.begun")
    temporary.write_text(text)
    temporary.replace(path)


def files_in(folder: StoredPath) -> Iterator[tuple[StoredPath, float]]:
    """Yield the files of a folder, recursively, and when each was written."""
    if isinstance(folder, ObjectPath):
        yield from folder.walk()
        return
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                yield path, path.stat().st_mtime
        except FileNotFoundError:
            continue


def remove_folder(folder: StoredPath) -> None:
    """Remove a folder and its contents, if it exists."""
    if isinstance(folder, ObjectPath):
        for path, _ in folder.walk():
            path.unlink(missing_ok=True)
    elif folder.is_dir():
        shutil.rmtree(folder, onerror=_ignore_missing)


def _ignore_missing(
    _: object, __: str, exc_info: tuple[type[BaseException], BaseException, object]
) -> None:
    """Ignore missing files: another process may be removing the same folder."""
    if not isinstance(exc_info[1], FileNotFoundError):
        raise exc_info[1]
