"""How much of a tenant's quota its cluster uses."""

from __future__ import annotations

from realtime.models import Cluster


def write_partitions() -> int:
    """Return the write partitions of the cluster of the tenant in scope, counted separately for
    each query partition.
    """
    cluster = Cluster.objects.first()
    return cluster.size.filter_nodes if cluster else 0
