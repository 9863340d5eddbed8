"""What pods of a cluster have in common: they conform to `restricted` Pod Security and beyond. They
only write to a volume that is deleted with the pod, like the chart's pods.
"""

from __future__ import annotations

from realtime.clusters.kubernetes.cluster_spec import ClusterSpec, GridSpec, NodeSize
from realtime.clusters.kubernetes.objects.naming import Object, selector

USER = 10001
HTTP_PORT, DRIVER_PORT, BLOCKS_PORT = 8082, 7078, 7079
SECRET = "grid"
SCRATCH: Object = {"name": "scratch", "emptyDir": {"sizeLimit": "2Gi"}}
SCRATCH_MOUNTS: list[Object] = [
    {"name": "scratch", "mountPath": "/tmp", "subPath": "tmp"},  # noqa: S108 -- the pod's own
    {"name": "scratch", "mountPath": "/var/lib/rillbase", "subPath": "data"},
]
#: With the secret in this file, a driver and its executors authenticate each other: see
#: `settings.spark_settings`.
SPARK_SECRET_KEY = "RILLBASE_SPARK_SECRET"
SPARK_SECRET_FOLDER = "/etc/rillbase/spark-secret"
SPARK_SECRET: Object = {
    "name": "spark-secret",
    "secret": {
        "secretName": SECRET,
        "defaultMode": 0o440,
        "items": [{"key": SPARK_SECRET_KEY, "path": "spark-secret"}],
    },
}
SPARK_SECRET_MOUNT: Object = {
    "name": "spark-secret",
    "mountPath": SPARK_SECRET_FOLDER,
    "readOnly": True,
}


def basics(
    cluster: ClusterSpec, part: str, grid: GridSpec, account: str, *, calls_api: bool
) -> Object:
    """Return the part of a pod's `spec` that does not depend on what it runs."""
    return {
        "serviceAccountName": account,
        "automountServiceAccountToken": calls_api,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector(cluster, part, grid)},
            }
            for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        ],
    }


def container(cluster: ClusterSpec, name: str) -> Object:
    """Return the part of a container that does not depend on what it runs."""
    return {
        "name": name,
        "image": cluster.image,
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "env": [{"name": name, "value": value} for name, value in sorted(cluster.settings.items())],
        "envFrom": [{"secretRef": {"name": SECRET}}],
    }


def resources(size: NodeSize, *, guaranteed: bool, burst_mib: int) -> Object:
    """Return the requests and limits of a container. With `guaranteed`, they are equal."""
    requests = {"cpu": f"{size.cpu_milli}m", "memory": f"{size.memory_mib}Mi"}
    resource_limits = requests if guaranteed else {"memory": f"{size.memory_mib + burst_mib}Mi"}
    return {"requests": requests, "limits": resource_limits}
