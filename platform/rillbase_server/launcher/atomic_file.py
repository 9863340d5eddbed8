"""Writes small files atomically."""

import os
from pathlib import Path

PRIVATE = 0o600


def write_atomically(path: Path, text: str, *, durable: bool = False) -> None:
    """Replace ``path`` by a private file holding ``text``; ``durable`` survives a power cut."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, PRIVATE)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
