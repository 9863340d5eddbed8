"""Where a dataset's files lie, and what its namespace in Iceberg's catalogue is called."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from foundation.environment import environment
from foundation.errors import Unavailable


def folder_of(dataset_id: UUID) -> Path:
    """Return the folder below which all files of a dataset lie."""
    return root() / str(dataset_id)


def root() -> Path:
    """Return the folder of all datasets, or raise `Unavailable` if the installation has none."""
    settings = environment()
    if settings.rillbase_analytics_dir is not None:
        return settings.rillbase_analytics_dir.absolute()
    if settings.rillbase_env == "production":
        # What is local to one server would be lost with it, and is nothing to the others.
        raise Unavailable("There is no folder for analytics tables: see RILLBASE_ANALYTICS_DIR.")
    return (settings.rillbase_data_dir / "analytics").absolute()


def namespace_of(dataset_id: UUID) -> str:
    """Return a dataset's namespace in the catalogue: `ds_` and the id's digits."""
    return f"ds_{dataset_id.hex}"
