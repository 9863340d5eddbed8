"""Segments: the files that an upload produces, one for each table and each ID-key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.rows.file_store import StoredPath

#: The folder of segments in the dataset's folder.
FOLDER = "segments"


@dataclass(frozen=True, slots=True)
class UploadSegment:
    """Durable, uncommitted operations on one table, or the keys of one ID-key."""

    table: str
    #: Relative to the dataset's folder.
    path: str
    rows: int
    bytes: int
    id_key: str = ""


def remove(folder: StoredPath, paths: Iterable[str]) -> None:
    """Remove segments that were never committed or are no longer needed."""
    for path in paths:
        (folder / path).unlink(missing_ok=True)
