"""A cluster as the API shows it."""

from __future__ import annotations

from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject
from realtime.models import Cluster

#: For a tenant without a dedicated cluster: it uses the shared grid.
SHARED: JsonObject = {
    "launcher": "shared",
    "state": "shared",
    "write_partitions": None,
    "query_partitions": None,
    "node_size": None,
    "tier": None,
    "image": None,
    "idle_after_s": None,
    "conditions": [],
    "version": None,
    "created_at": None,
    "updated_at": None,
}


def describe(cluster: Cluster) -> JsonObject:
    """Return a tenant's own cluster."""
    return {
        "launcher": "kubernetes",
        "state": cluster.state,
        "write_partitions": cluster.write_partitions,
        "query_partitions": cluster.query_partitions,
        "node_size": cluster.node_size,
        "tier": cluster.tier,
        "image": cluster.image or None,
        "idle_after_s": cluster.idle_after_s,
        "conditions": cluster.conditions,
        "version": cluster.version,
        "created_at": timestamp(cluster.created_at),
        "updated_at": timestamp(cluster.updated_at),
    }
