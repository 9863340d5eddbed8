"""How much of a tenant's quota its cluster uses."""

from __future__ import annotations

from realtime.models import Cluster


def write_partitions() -> int:
    """Return the write partitions of the cluster of the tenant in scope."""
    found = Cluster.objects.values_list("write_partitions", flat=True).first()
    return found or 0
