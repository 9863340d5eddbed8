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


class UsageMinute(TenantOwned):
    """Writes and events of one tenant in one minute (UTC), kept for the last hours. The tenant is
    not a foreign key: one statement writes the minutes of many tenants, which must not fail because
    one of the tenants has been deleted.
    """

    id = models.BigAutoField(primary_key=True)
    tenant_id = models.UUIDField()
    minute = models.DateTimeField()
    #: Documents written.
    writes = models.BigIntegerField(default=0)
    #: Events sent to subscribers.
    events = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "minute"], name="usage_once_per_minute")
        ]
        indexes = [models.Index(fields=["minute"], name="usage_oldest_minutes_first")]


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
