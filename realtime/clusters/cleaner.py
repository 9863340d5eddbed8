"""Removes the cluster of a tenant that is being deleted. Its Kubernetes objects become orphans,
which are removed by a sweep.
"""

from __future__ import annotations

from uuid import UUID

from realtime.clusters import epochs
from realtime.models import Cluster


def clean(tenant_id: UUID) -> None:
    """Remove the tenant's cluster."""
    Cluster.unscoped.using("relay").filter(tenant_id=tenant_id).delete()
    epochs.disown(tenant_id)
