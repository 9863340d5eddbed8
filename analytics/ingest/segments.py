"""Segments: what an upload leaves, one file for each of its tables and ID-keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.rows.stored import StoredPath

#: The folder of segments below the dataset's.
FOLDER = "segments"


@dataclass(frozen=True, slots=True)
class Segment:
    """Operations on one table that are on the disk, and that nobody sees yet.

    Or the keys of one ID-key that these operations have.
    """

    table: str
    #: Below the dataset's folder.
    path: str
    rows: int
    bytes: int
    id_key: str = ""


def remove(folder: StoredPath, paths: Iterable[str]) -> None:
    """Remove segments that nobody was told of, or that nobody needs any more."""
    for path in paths:
        (folder / path).unlink(missing_ok=True)
