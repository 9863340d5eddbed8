"""The objects of a tenant's cluster, as plain dicts.

naming      names, labels and annotations: whose an object is, and which part
namespace   the namespace and its bounds: quota, usual limits, Pod Security
accounts    who may do what in it
network     which traffic is allowed: none between tenants
settings    secrets, and how Spark makes executors
pods        what all pods have in common
grid        the driver of a grid epoch and what stands around it
"""

from __future__ import annotations

from realtime.clusters.kubernetes.cluster_spec import ClusterSpec
from realtime.clusters.kubernetes.objects import accounts, grid, namespace, network, settings
from realtime.clusters.kubernetes.objects.naming import Object


def render(wanted: ClusterSpec) -> list[Object]:
    """Return all objects, each after those that it needs."""
    return [
        namespace.namespace(wanted),
        *accounts.bindings(wanted),
        *namespace.bounds(wanted),
        *accounts.accounts(wanted),
        *network.policies(wanted),
        settings.secret(wanted),
        *(each for one in wanted.grids for each in grid.objects(wanted, one)),
    ]
