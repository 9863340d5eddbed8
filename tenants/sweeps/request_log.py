"""Keeps the request log within its bounds."""

from __future__ import annotations

from uuid import UUID

from django.db import connections
from django.db.models import Sum
from django.utils import timezone

from foundation.tasks import task
from foundation.tasks.definition import PERIODIC
from tenants.models import RequestBatch, RequestGap
from tenants.request_log import bounds
from tenants.sweeps.retention import delete_in_batches

#: Deletes a tenant's oldest batches, and counts their entries as missing.
_REDUCE = """
WITH ranked AS (
  SELECT id, sum(entries) OVER newest AS entries, sum(size_bytes) OVER newest AS size_bytes
  FROM tenants_requestbatch WHERE tenant_id = %(tenant)s
  WINDOW newest AS (ORDER BY last_at DESC, id DESC)
), gone AS (
  DELETE FROM tenants_requestbatch batch USING ranked
  WHERE batch.id = ranked.id
    AND (ranked.entries > %(entries)s OR ranked.size_bytes > %(size_bytes)s)
  RETURNING batch.entries, date_trunc('minute', batch.last_at) AS minute
)
INSERT INTO tenants_requestgap (id, tenant_id, minute, dropped, removed)
SELECT gen_random_uuid(), %(tenant)s, minute, 0, sum(entries) FROM gone
GROUP BY minute ORDER BY minute
ON CONFLICT (tenant_id, minute)
DO UPDATE SET removed = tenants_requestgap.removed + EXCLUDED.removed
"""


@task(name="tenants.sweeps.old_requests", policy=PERIODIC)
def delete_requests() -> None:
    """Delete requests of more than a day ago, and the oldest of tenants whose logs are full."""
    before = timezone.now() - bounds.RETENTION
    batches = RequestBatch.unscoped.using("relay")
    delete_in_batches(batches.filter(last_at__lt=before))
    delete_in_batches(RequestGap.unscoped.using("relay").filter(minute__lt=before))
    totals = batches.order_by().values_list("tenant_id").annotate(Sum("entries"), Sum("size_bytes"))
    logs = list(totals)
    share = bounds.fair_share([size for _, _, size in logs], bounds.max_bytes())
    most_bytes = min(share, bounds.MAX_TENANT_BYTES)
    for tenant_id, entries, size in logs:
        if entries > bounds.MAX_ENTRIES or size > most_bytes:
            _reduce(tenant_id, most_bytes)


def _reduce(tenant_id: UUID, most_bytes: int) -> None:
    with connections["relay"].cursor() as cursor:
        cursor.execute(
            _REDUCE,
            {
                "tenant": tenant_id,
                "entries": int(bounds.MAX_ENTRIES * bounds.KEPT_SHARE),
                "size_bytes": int(most_bytes * bounds.KEPT_SHARE),
            },
        )
