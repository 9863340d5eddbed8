"""Storage used by tenants' documents, measured once an hour.

Usage consists of sums by period, but a level has no sum. So an hour's measurement counts as
document-hours and byte-hours: a day's sum divided by 24 is the day's mean. Tombstones and index
entries are not counted; bytes are those of the documents as BSON.

Each tenant is measured by a separate statement, which reads rows' headers and no document; the
storage node knows the sizes of native collections. An hour is measured once: an interrupted run
continues with the remaining tenants.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from django.db import connections, transaction

from documents.collections.node_upkeep import sizes_of
from foundation.errors import Unavailable
from foundation.tasks import task
from foundation.tasks.definition import PERIODIC

log = logging.getLogger(__name__)

ALIAS = "relay"
#: The time allowed for one tenant, which may have very many documents.
MEASURE_S = 60
DOCUMENT_HOURS, BYTE_HOURS = "document_hours", "storage_byte_hours"

_TENANTS = """
SELECT c.tenant_id, array_agg(c.id) FILTER (WHERE c.backend = 'native')
FROM documents_collection c
WHERE c.state = 'active' AND NOT EXISTS (
    SELECT FROM tenants_usagehour u WHERE u.tenant_id = c.tenant_id AND u.metric = %s
        AND u.hour = date_trunc('hour', now(), 'UTC')
)
GROUP BY c.tenant_id
"""
_MEASURE = """
INSERT INTO tenants_usagehour (tenant_id, hour, metric, amount)
SELECT %(tenant)s, date_trunc('hour', now(), 'UTC'), m.metric, m.amount
FROM (
    SELECT count(*) AS documents, coalesce(sum(octet_length(d.body)), 0) AS bytes
    FROM documents_collection c JOIN documents_document d ON d.collection_id = c.id
    WHERE c.tenant_id = %(tenant)s AND c.state = 'active' AND c.backend = 'postgres'
        AND d.body IS NOT NULL
) AS measured
CROSS JOIN LATERAL (
    VALUES (%(documents)s, measured.documents + %(native_documents)s),
        (%(bytes)s, measured.bytes + %(native_bytes)s)
) AS m (metric, amount)
ON CONFLICT (tenant_id, metric, hour) DO NOTHING
"""


@task(name="documents.collections.storage_usage", policy=PERIODIC)
def sweep() -> None:
    """Measure each tenant that has not been measured this hour."""
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(_TENANTS, (DOCUMENT_HOURS,))
        tenants = cursor.fetchall()
    for tenant_id, native in tenants:
        try:
            measure(tenant_id, native or ())
        except Unavailable as error:
            # The next run tries again.
            log.warning("the documents of tenant %s were not measured: %s", tenant_id, error)


def measure(tenant_id: UUID, native: Sequence[UUID] = ()) -> None:
    """Measure one tenant with these native collections, unless that has been done this hour."""
    sizes = sizes_of(tenant_id, native).values() if native else ()
    with transaction.atomic(using=ALIAS), connections[ALIAS].cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = '{MEASURE_S}s'")
        cursor.execute(
            _MEASURE,
            {
                "tenant": tenant_id,
                "documents": DOCUMENT_HOURS,
                "bytes": BYTE_HOURS,
                "native_documents": sum(size.documents for size in sizes),
                "native_bytes": sum(size.bytes for size in sizes),
            },
        )
