"""Uploads."""

from __future__ import annotations

from django.db import models

from analytics.models.dataset import Dataset
from foundation.ids import uuid7
from foundation.scope import TenantOwned
from tenants.models import Tenant


class Upload(TenantOwned):
    """Rows of several tables that become visible together. The upload's number identifies the
    resulting state.
    """

    class State(models.TextChoices):
        OPEN = "open"
        COMMITTED = "committed"
        ABORTED = "aborted"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="uploads")
    #: The caller's id of the upload, which makes retries idempotent.
    name = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    #: 1, 2, 3, … without gaps, in commit order.
    number = models.BigIntegerField(null=True, blank=True)
    #: SHA-256 of the body if the upload was sent in one request; null if it was opened and appended
    #: to.
    digest = models.BinaryField(null=True, blank=True)
    rows = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    #: Does not decrease with increasing numbers.
    committed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dataset", "name"], name="upload_name_unique"),
            models.UniqueConstraint(fields=["dataset", "number"], name="upload_number_unique"),
        ]
        indexes = [models.Index(fields=["dataset", "committed_at"], name="upload_by_time")]

    def __str__(self) -> str:
        return self.name
