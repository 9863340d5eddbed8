"""How much of a tenant's quota its cluster uses."""

from __future__ import annotations

from realtime.models import Cluster


def write_partitions() -> int:
    """Return the write partitions of the cluster of the tenant in scope, those of each query
    partition for themselves.
    """
    found = Cluster.objects.first()
    return found.size.filter_nodes if found else 0
