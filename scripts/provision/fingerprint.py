"""Fingerprints of files: a result is kept as long as its inputs have not changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def of_files(paths: Iterable[Path], *, root: Path) -> str:
    """Return one hash over names and contents."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]
