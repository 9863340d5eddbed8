"""Service accounts and role bindings in a tenant's namespace.

Roles are the chart's ClusterRoles: an account that may write roles could grant itself anything.
Only bindings of two of them are created here, each for this namespace only: the provisioner's own,
so that it needs no permissions elsewhere, and the driver's, which creates, watches and deletes
executors' pods.
"""

from __future__ import annotations

from realtime.clusters.kubernetes.cluster_spec import ClusterSpec
from realtime.clusters.kubernetes.objects.naming import Object, metadata

DRIVER_ACCOUNT = "grid"
#: Nodes never call the API server.
EXECUTOR_ACCOUNT = "executor"


def bindings(cluster: ClusterSpec) -> list[Object]:
    """Return the role bindings."""
    installation = cluster.installation
    return [
        _binding(
            cluster,
            "provisioner",
            installation.provisioner_role,
            (installation.provisioner, installation.namespace),
            "Rillbase manages the objects of this namespace",
        ),
        _binding(
            cluster,
            DRIVER_ACCOUNT,
            installation.driver_role,
            (DRIVER_ACCOUNT, cluster.namespace),
            "The driver creates, watches and deletes its executors' pods",
        ),
    ]


def accounts(cluster: ClusterSpec) -> list[Object]:
    """Return the accounts of pods. Tokens are mounted only in pods that need one."""
    about = {
        DRIVER_ACCOUNT: "The driver of the grid",
        EXECUTOR_ACCOUNT: "Grid nodes, which have no permissions",
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata(cluster, name, name, purpose),
            "automountServiceAccountToken": False,
        }
        for name, purpose in about.items()
    ]


def _binding(
    cluster: ClusterSpec, name: str, role: str, account: tuple[str, str], about: str
) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata(cluster, "access", name, about),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account[0], "namespace": account[1]}],
    }
