"""Removal of many rows in many small transactions, so that none holds locks for long."""

from __future__ import annotations

from django.db import models

BATCH_ROWS = 1000
#: With this many batches a run stays far below a task's time limit.
MAX_BATCHES = 50

ALIAS = "relay"


def delete_in_batches(rows: models.QuerySet[models.Model]) -> int:
    """Delete the rows, up to the limit of one run. Return how many were deleted."""
    deleted = 0
    for _ in range(MAX_BATCHES):
        ids = list(rows.values_list("pk", flat=True)[:BATCH_ROWS])
        if not ids:
            break
        rows.model._base_manager.using(ALIAS).filter(pk__in=ids).delete()
        deleted += len(ids)
    return deleted
