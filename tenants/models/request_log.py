"""The request log."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from foundation.ids import uuid7
from foundation.scope import TenantOwned


class RequestBatch(TenantOwned):
    """What one process has recorded of a tenant's requests in one interval, in columns: the n-th
    elements of the arrays are one entry. As in the error log, the tenant is not a foreign key.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant_id = models.UUIDField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    #: The length of each array.
    entries = models.PositiveIntegerField()
    #: Before compression.
    size_bytes = models.PositiveIntegerField()
    at = ArrayField(models.DateTimeField())
    kind = ArrayField(models.TextField())
    method = ArrayField(models.TextField())
    route = ArrayField(models.TextField())
    status = ArrayField(models.SmallIntegerField())
    duration_ms = ArrayField(models.FloatField())
    bytes_in = ArrayField(models.BigIntegerField())
    bytes_out = ArrayField(models.BigIntegerField())
    actor = ArrayField(models.TextField())
    request_id = ArrayField(models.TextField())
    code = ArrayField(models.TextField())

    class Meta:
        indexes = [
            models.Index(
                fields=["tenant_id", "-last_at", "-id"],
                include=["entries", "size_bytes"],
                name="requests_newest_first",
            ),
            models.Index(fields=["last_at"], name="requests_oldest_first"),
        ]


class RequestGap(TenantOwned):
    """How many requests of one minute are missing from a tenant's request log."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant_id = models.UUIDField()
    minute = models.DateTimeField()
    #: Not recorded, since there were too many at once.
    dropped = models.PositiveBigIntegerField(default=0)
    #: Recorded and removed since, because the log was full.
    removed = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "minute"], name="gaps_once_per_minute")
        ]
        indexes = [models.Index(fields=["minute"], name="gaps_oldest_first")]
