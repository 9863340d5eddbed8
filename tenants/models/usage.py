"""Metering."""

from __future__ import annotations

from django.db import models

from foundation.ids import uuid7
from foundation.scope import TenantOwned
from tenants.models.tenant import Tenant


class UsageSample(models.Model):
    """What one process counted for one tenant since its last sample. Rolled up, then removed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant_id = models.UUIDField()
    at = models.DateTimeField()
    #: Metric name → amount.
    amounts = models.JSONField()


class UsageHour(TenantOwned):
    """Sum of one metric of one tenant over one hour (UTC)."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    hour = models.DateTimeField()
    metric = models.CharField(max_length=40)
    amount = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "metric", "hour"], name="usage_once_per_hour")
        ]
