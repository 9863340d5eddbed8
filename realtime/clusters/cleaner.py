"""A tenant's cluster goes with the tenant.

What runs of it on Kubernetes is then an orphan, which is detected and removed there.
"""

from __future__ import annotations

from uuid import UUID

from realtime.clusters import epochs
from realtime.models import Cluster


def clean(tenant_id: UUID) -> None:
    """Remove the tenant's cluster."""
    Cluster.unscoped.using("relay").filter(tenant_id=tenant_id).delete()
    epochs.disown(tenant_id)
