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


def render(wanted: ClusterSpec) -> list[Object]:
    """Return all objects, each after its prerequisites."""
    return [
        namespace.namespace(wanted),
        *accounts.bindings(wanted),
        *namespace.bounds(wanted),
        *accounts.accounts(wanted),
        *network.policies(wanted),
        settings.secret(wanted),
        *(each for one in wanted.grids for each in grid.objects(wanted, one)),
    ]
