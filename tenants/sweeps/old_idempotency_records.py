"""Stored responses for retried calls are deleted after the promised day."""

from __future__ import annotations

import datetime

from django.utils import timezone

from foundation.models import IdempotencyRecord
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants.sweeps.batches import delete_in_batches

KEEP = datetime.timedelta(hours=24)


@task(name="tenants.sweeps.old_idempotency_records", policy=PERIODIC)
def sweep() -> None:
    """Delete records that are over a day old."""
    before = timezone.now() - KEEP
    delete_in_batches(IdempotencyRecord.objects.using("relay").filter(created_at__lt=before))
