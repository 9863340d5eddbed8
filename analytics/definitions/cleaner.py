"""Removes the datasets and files of a tenant that is being deleted."""

from __future__ import annotations

from uuid import UUID

from analytics.models import Dataset, Run, StoredFile, Upload

ALIAS = "relay"


def clean(tenant_id: UUID) -> None:
    """Remove the tenant's datasets. Rows are deleted last, since files are found through them."""
    # The module defines tasks, which cannot be imported while models are loading.
    from analytics.definitions.removal import remove_files  # noqa: PLC0415

    datasets = Dataset.unscoped.using(ALIAS).filter(tenant_id=tenant_id)
    for dataset_id in datasets.values_list("pk", flat=True):
        remove_files(dataset_id)
    for model in (StoredFile, Run, Upload, Dataset):
        model.unscoped.using(ALIAS).filter(tenant_id=tenant_id).delete()
