"""The objects of a tenant's cluster, as plain dicts.

naming      names, labels and annotations: the tenant and the part of an object
namespace   the namespace and its limits: quota, default limits, Pod Security
accounts    service accounts and their role bindings
network     which traffic is allowed: none between tenants
settings    secrets, and Spark's settings for executors
pods        what all pods have in common
grid        the driver of a grid epoch, its service and its disruption budget
"""

from __future__ import annotations

from realtime.clusters.kubernetes.cluster_spec import ClusterSpec
from realtime.clusters.kubernetes.objects import accounts, grid, namespace, network, settings
from realtime.clusters.kubernetes.objects.naming import Object


def render(cluster: ClusterSpec) -> list[Object]:
    """Return all objects, each after its prerequisites."""
    return [
        namespace.namespace(cluster),
        *accounts.bindings(cluster),
        *namespace.bounds(cluster),
        *accounts.accounts(cluster),
        *network.policies(cluster),
        settings.secret(cluster),
        *(described for epoch in cluster.grids for described in grid.objects(cluster, epoch)),
    ]
