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


def bindings(wanted: ClusterSpec) -> list[Object]:
    """Return the role bindings."""
    ours = wanted.installation
    return [
        _binding(
            wanted,
            "provisioner",
            ours.provisioner_role,
            (ours.provisioner, ours.namespace),
            "Rillbase manages the objects of this namespace",
        ),
        _binding(
            wanted,
            DRIVER_ACCOUNT,
            ours.driver_role,
            (DRIVER_ACCOUNT, wanted.namespace),
            "The driver creates, watches and deletes its executors' pods",
        ),
    ]


def accounts(wanted: ClusterSpec) -> list[Object]:
    """Return the accounts of pods. Tokens are mounted only in pods that need one."""
    about = {
        DRIVER_ACCOUNT: "The driver of the grid",
        EXECUTOR_ACCOUNT: "Grid nodes, which have no permissions",
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata(wanted, name, name, purpose),
            "automountServiceAccountToken": False,
        }
        for name, purpose in about.items()
    ]


def _binding(
    wanted: ClusterSpec, name: str, role: str, account: tuple[str, str], about: str
) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata(wanted, "access", name, about),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account[0], "namespace": account[1]}],
    }
