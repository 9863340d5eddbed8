"""A tenant's namespace, and its resource limits."""

from __future__ import annotations

from realtime.clusters.kubernetes.cluster_spec import (
    DRIVER,
    DRIVER_BURST_MIB,
    ClusterSpec,
    GridSpec,
)
from realtime.clusters.kubernetes.objects.naming import Object, labels, metadata
from realtime.grid.size import GridSize

_LEVELS = ("enforce", "audit", "warn")


def namespace(cluster: ClusterSpec) -> Object:
    """Return the namespace, which admits only pods that conform to `restricted` Pod Security."""
    security = {f"pod-security.kubernetes.io/{level}": "restricted" for level in _LEVELS}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": cluster.namespace,
            "labels": {**labels(cluster, "namespace"), **security},
            "annotations": {"rillbase.dev/about": f"The matching grid of tenant {cluster.slug}"},
        },
    }


def bounds(cluster: ClusterSpec) -> list[Object]:
    """Return the resource quota, and the default resources of pods."""
    return [_quota(cluster), _limits(cluster)]


def _quota(cluster: ClusterSpec) -> Object:
    """Return a quota with room for all grids, one more, and executors that are being replaced.
    Spark fails after a quota has rejected a few executors.
    """
    largest = max(cluster.grids, key=lambda grid: grid.size.nodes, default=GridSpec(0, GridSize(1)))
    grids = [*cluster.grids, largest]
    executors = sum(grid.executors + 1 for grid in grids)
    drivers = len(grids)
    size = cluster.size
    memory = drivers * (DRIVER.memory_mib + DRIVER_BURST_MIB) + executors * size.memory_mib
    cpu = drivers * DRIVER.cpu_milli + executors * size.cpu_milli
    hard = {
        "pods": str(drivers + executors),
        "requests.cpu": f"{cpu}m",
        "requests.memory": f"{memory}Mi",
        "limits.memory": f"{memory}Mi",
        # Nothing stores data, and nothing is reachable from outside.
        "persistentvolumeclaims": "0",
        "services.loadbalancers": "0",
        "services.nodeports": "0",
    }
    about = "Room for the grid and for a second one during a resize, and no more"
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata(cluster, "bounds", "cluster", about),
        "spec": {"hard": hard},
    }


def _limits(cluster: ClusterSpec) -> Object:
    max_mib = max(DRIVER.memory_mib + DRIVER_BURST_MIB, cluster.size.memory_mib)
    usual = {
        "type": "Container",
        "default": {"memory": "256Mi"},
        "defaultRequest": {"cpu": "50m", "memory": "64Mi"},
        "max": {"memory": f"{max_mib}Mi"},
    }
    about = "Default and maximum resources of containers that specify none"
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": metadata(cluster, "bounds", "cluster", about),
        "spec": {"limits": [usual]},
    }
