"""Finished webhook deliveries are kept for a month."""

from __future__ import annotations

import datetime

from django.utils import timezone

from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants.models import WebhookDelivery
from tenants.sweeps.batches import delete_in_batches

KEEP = datetime.timedelta(days=30)


@task(name="tenants.sweeps.old_deliveries", policy=PERIODIC)
def sweep() -> None:
    """Delete deliveries that ended over a month ago."""
    ended = WebhookDelivery.unscoped.using("relay").filter(finished_at__lt=timezone.now() - KEEP)
    delete_in_batches(ended)
