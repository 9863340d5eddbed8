"""Usage samples are rolled up into sums by hour and by minute, each sample exactly once.

One statement deletes samples and adds them up, so both happen or neither. Two concurrent roll-ups
cannot take the same sample: the second one finds it gone. Sums are written in a fixed order to
avoid deadlocks.
"""

from __future__ import annotations

from django.db import connections

from foundation.tasks import task
from foundation.tasks.definition import PERIODIC

BATCH_SAMPLES = 5000
MAX_BATCHES = 50

_ROLL_UP = """
WITH taken AS (
    DELETE FROM tenants_usagesample
    WHERE id IN (SELECT id FROM tenants_usagesample ORDER BY id LIMIT %s)
    RETURNING tenant_id, at, amounts
), added_up AS (
    INSERT INTO tenants_usagehour (tenant_id, hour, metric, amount)
    SELECT taken.tenant_id, date_trunc('hour', taken.at, 'UTC'), each.key, sum(each.value::bigint)
    FROM taken
    -- A tenant that has been removed meanwhile has no usage any more.
    JOIN tenants_tenant tenant ON tenant.id = taken.tenant_id,
    LATERAL jsonb_each_text(taken.amounts) each
    GROUP BY 1, 2, 3
    ORDER BY 1, 2, 3
    ON CONFLICT (tenant_id, metric, hour)
    DO UPDATE SET amount = tenants_usagehour.amount + excluded.amount
), by_minute AS (
    INSERT INTO tenants_usageminute (tenant_id, minute, writes, events)
    SELECT taken.tenant_id, date_trunc('minute', taken.at),
        sum(coalesce((taken.amounts ->> 'document_writes')::bigint, 0)),
        sum(coalesce((taken.amounts ->> 'live_events')::bigint, 0))
    FROM taken
    JOIN tenants_tenant tenant ON tenant.id = taken.tenant_id
    WHERE taken.amounts ?| ARRAY['document_writes', 'live_events']
    GROUP BY 1, 2
    ORDER BY 1, 2
    ON CONFLICT (tenant_id, minute)
    DO UPDATE SET writes = tenants_usageminute.writes + excluded.writes,
        events = tenants_usageminute.events + excluded.events
)
SELECT count(*) FROM taken
"""


@task(name="tenants.sweeps.usage_roll_up", policy=PERIODIC)
def sweep() -> None:
    """Roll up the samples that processes have written."""
    for _ in range(MAX_BATCHES):
        if roll_up(BATCH_SAMPLES) < BATCH_SAMPLES:
            return


def roll_up(limit: int) -> int:
    """Roll up at most `limit` samples, oldest first. Return how many."""
    with connections["relay"].cursor() as cursor:
        cursor.execute(_ROLL_UP, (limit,))
        row = cursor.fetchone()
    return int(row[0]) if row else 0
