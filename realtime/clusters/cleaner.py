"""Removes a tenant's cluster with the tenant. Its objects on Kubernetes are then orphans, which are
detected and removed there.
"""

from __future__ import annotations

from uuid import UUID

from realtime.clusters import epochs
from realtime.models import Cluster


def clean(tenant_id: UUID) -> None:
    """Remove the tenant's cluster."""
    Cluster.unscoped.using("relay").filter(tenant_id=tenant_id).delete()
    epochs.disown(tenant_id)
