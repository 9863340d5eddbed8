"""A dataset as the API shows it."""

from __future__ import annotations

from typing import cast

from analytics.models import Dataset
from analytics.table_definitions import read_definition
from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject


def describe(dataset: Dataset) -> JsonObject:
    """Return a dataset."""
    return {
        "id": str(dataset.id),
        "name": dataset.name,
        **cast("JsonObject", read_definition(dataset.definition)),
        "retention_s": dataset.retention_s,
        "state": dataset.last_upload,
        "stored_bytes": dataset.stored_bytes,
        "version": dataset.version,
        "created_at": timestamp(dataset.created_at),
        "updated_at": timestamp(dataset.updated_at),
    }
