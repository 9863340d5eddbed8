"""Runs: groups of uploads that pass through the stages together."""

from __future__ import annotations

from django.db import models

from analytics.models.dataset import Dataset
from foundation.ids import uuid7
from foundation.scope import TenantOwned
from tenants.models import Tenant


class Run(TenantOwned):
    """The uploads from `first` to `last`, each key once, as sorted files.

    Runs in force are contiguous. The first is the authority, which begins with the first upload. A
    run that was merged into another is kept until its retention period ends. A remapped run has no
    rows: its uploads' keys have been assigned ids, and it is sorted next.
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
    #: How many times its rows were merged. Runs of the same level are merged together.
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
