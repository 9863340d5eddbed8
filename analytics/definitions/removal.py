"""Removes the files of a dropped dataset, and its tables in the Iceberg catalogue.

The dataset's row is already deleted, so no new work starts on the files. Current readers keep them
open, or fail because the dataset does not exist. Every worker loads this module, so it imports no
columnar library.
"""

from __future__ import annotations

from uuid import UUID

from django.db import connections

from analytics.catalogue_lock import catalogue_lock
from analytics.locations import folder_of, namespace_of, root
from analytics.models import Dataset
from foundation.tasks import task

ALIAS = "relay"
REMOVE_TASK = "analytics.remove"


@task(name=REMOVE_TASK)
def remove(*, dataset: str) -> None:
    """Remove the remains of a dropped dataset."""
    dataset_id = UUID(dataset)
    if Dataset.unscoped.using(ALIAS).filter(pk=dataset_id).exists():
        return
    remove_files(dataset_id)


def remove_files(dataset_id: UUID) -> None:
    """Remove a dataset's tables from the catalogue, and its folder."""
    with catalogue_lock(dataset_id), connections[ALIAS].cursor() as cursor:
        for table, column in (
            ("iceberg_tables", "table_namespace"),
            ("iceberg_namespace_properties", "namespace"),
        ):
            cursor.execute(
                f"DELETE FROM {table} WHERE {column} = %s",  # noqa: S608 -- two literals
                (namespace_of(dataset_id),),
            )
    from analytics.requests import folder_for  # noqa: PLC0415
    from analytics.rows.file_store import remove_folder  # noqa: PLC0415

    for folder in (folder_of(dataset_id), folder_for(root(), dataset_id)):
        remove_folder(folder)
