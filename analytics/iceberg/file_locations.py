"""Where readers outside the installation find a dataset's files.

Files in a local directory are read over HTTP as objects of S3. The bucket is the dataset.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from analytics.locations import folder_of
from analytics.pipeline.catalogue import ForeignFile


class FileLocations:
    """Replaces the locations of a dataset's files by those for readers, and back."""

    def __init__(self, dataset_id: UUID) -> None:
        folder = folder_of(dataset_id)
        self.folder = folder if isinstance(folder, Path) else None
        self._own = f"{folder.as_uri()}/"
        #: Files in an object store have the same location for everyone.
        self.public_prefix = f"s3://{dataset_id}/" if self.folder else self._own

    def public(self, location: str) -> str:
        """Return the location for readers, or raise `ForeignFile`."""
        return self.public_prefix + self.relative(location)

    def own(self, path: str) -> str:
        """Return the location of a path below the dataset's folder."""
        return self._own + path

    def relative(self, location: str) -> str:
        """Return the path below the dataset's folder, or raise `ForeignFile`."""
        path = location.removeprefix(self._own)
        if path == location or ".." in path.split("/"):
            raise ForeignFile(f"A table names a file outside its folder: {location[:400]}")
        return path
