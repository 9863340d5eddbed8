"""Runs: uploads that have passed through stages together."""

from __future__ import annotations

from django.db import models

from analytics.models.dataset import Dataset
from foundation.ids import uuid7
from foundation.scope import TenantOwned
from tenants.models import Tenant


class Run(TenantOwned):
    """The uploads from `first` to `last`, each key once, as sorted files.

    Runs that are in force lie end to end behind the authority, which is a run itself and begins
    with the first upload. A run that was merged into another stays until its retention is over.

    A remapped run has no rows of its own: its uploads' keys have got their ids, and it is the next
    to be sorted.
    """

    class Stage(models.TextChoices):
        REMAPPED = "remapped"
        SORTED = "sorted"
        MERGED = "merged"
        AUTHORITY = "authority"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="runs")
    stage = models.CharField(max_length=10, choices=Stage.choices)
    #: How many times its rows were merged: runs of the same level are merged together.
    level = models.PositiveSmallIntegerField(default=0)
    first = models.BigIntegerField()
    last = models.BigIntegerField()
    rows = models.BigIntegerField()
    bytes = models.BigIntegerField()
    #: When the last of its uploads was committed.
    last_at = models.DateTimeField()
    #: When the first of its uploads was committed.
    first_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    #: When another run replaced it; null: it is in force.
    superseded_at = models.DateTimeField(null=True, blank=True)
    #: For the authority: maps table and view to the Iceberg snapshot of this state.
    snapshots = models.JSONField(default=dict)
    #: For the authority: whether the snapshots have been tagged.
    tagged = models.BooleanField(default=False)

    class Meta:
        indexes = [models.Index(fields=["dataset", "first"], name="run_by_first")]
        constraints = [
            models.UniqueConstraint(
                fields=["dataset", "first"],
                condition=models.Q(superseded_at=None),
                name="run_in_force_unique",
            )
        ]
