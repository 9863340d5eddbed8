"""The error log is bounded by age and by the number of entries per tenant."""

from __future__ import annotations

import datetime

from django.db.models import Count
from django.utils import timezone

from foundation.environment import environment
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants.models import ErrorEntry
from tenants.sweeps.batches import delete_in_batches

MAX_ENTRIES = 10_000


@task(name="tenants.sweeps.old_errors", policy=PERIODIC)
def sweep() -> None:
    """Delete expired entries, and the oldest entries of tenants over the limit."""
    rows = ErrorEntry.unscoped.using("relay")
    keep = datetime.timedelta(days=environment().rillbase_error_log_retention_days)
    delete_in_batches(rows.filter(last_at__lt=timezone.now() - keep))
    counted = rows.order_by().values("tenant_id").annotate(entries=Count("pk"))
    for tenant_id in counted.filter(entries__gt=MAX_ENTRIES).values_list("tenant_id", flat=True):
        own = rows.filter(tenant_id=tenant_id)
        newest_to_go = own.order_by("-pk").values_list("pk", flat=True)[MAX_ENTRIES]
        delete_in_batches(own.filter(pk__lte=newest_to_go))
