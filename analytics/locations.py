"""Where a dataset's files are stored, and its namespace in the Iceberg catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from foundation.environment import OBJECT_STORE_SCHEME, environment
from foundation.errors import Unavailable

if TYPE_CHECKING:
    from analytics.rows.file_store import StoredPath


def folder_of(dataset_id: UUID) -> StoredPath:
    """Return the folder of all files of a dataset."""
    return root() / str(dataset_id)


def root() -> StoredPath:
    """Return the folder of all datasets, or raise `Unavailable` if the installation has none."""
    settings = environment()
    location = settings.rillbase_analytics_dir
    if location.startswith(OBJECT_STORE_SCHEME):
        # Columnar libraries and store clients are loaded on demand.
        from analytics.rows.objects import ObjectPath  # noqa: PLC0415

        return ObjectPath.of(location)
    if location:
        return Path(location).absolute()
    if settings.rillbase_env == "production":
        # Storage of one server would be lost with it, and is not visible to other servers.
        raise Unavailable("Analytics tables have no storage location: set RILLBASE_ANALYTICS_DIR.")
    return (settings.rillbase_data_dir / "analytics").absolute()


def namespace_of(dataset_id: UUID) -> str:
    """Return a dataset's namespace in the catalogue: `ds_` and the id's digits."""
    return f"ds_{dataset_id.hex}"
