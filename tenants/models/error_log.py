"""The error log."""

from __future__ import annotations

from django.db import models

from foundation.ids import uuid7
from foundation.scope import TenantOwned


class ErrorEntry(TenantOwned):
    """An error of a tenant, with its number of occurrences within one minute. The tenant is not a
    foreign key: processes write entries of many tenants at once, which must not fail because one of
    the tenants has been deleted.
    """

    class Area(models.TextChoices):
        REQUEST = "request"
        WEBHOOK = "webhook"
        TASK = "task"
        LIVE = "live"
        AGGREGATE = "aggregate"
        SOURCE = "source"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant_id = models.UUIDField()
    area = models.CharField(max_length=20, choices=Area.choices)
    #: As listed in docs/errors.md.
    code = models.CharField(max_length=60)
    #: Of the HTTP response, if there was one.
    status = models.PositiveSmallIntegerField(null=True)
    #: The call, or the name of the object that failed.
    place = models.CharField(max_length=200)
    #: The most recent message.
    detail = models.CharField(max_length=500, blank=True)
    #: The caller: `user:<id>`, `api_key:<id>`, …
    actor = models.CharField(max_length=200, blank=True)
    #: Of the most recent occurrence.
    request_id = models.CharField(max_length=64, blank=True)
    count = models.PositiveBigIntegerField(default=1)
    at = models.DateTimeField()
    last_at = models.DateTimeField()
    #: The minute and the grouping key: one row, whichever processes recorded it.
    fingerprint = models.BinaryField(max_length=32)

    class Meta:
        verbose_name = "error"
        indexes = [
            models.Index(fields=["tenant_id", "-id"], name="errors_newest_first"),
            models.Index(fields=["last_at"], name="errors_oldest_first"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "fingerprint"], name="errors_once_per_minute"
            )
        ]
