"""One grid epoch: its driver, the service by which executors find it, and its disruption budget. A
resize adds an epoch with separate objects; those of the old epoch are deleted when it is retired.
"""

from __future__ import annotations

import hashlib
import json

from realtime.clusters.kubernetes.cluster_spec import (
    DRIVER,
    DRIVER_BURST_MIB,
    ClusterSpec,
    GridSpec,
)
from realtime.clusters.kubernetes.objects import pods, settings
from realtime.clusters.kubernetes.objects.accounts import DRIVER_ACCOUNT
from realtime.clusters.kubernetes.objects.naming import Object, labels, metadata, selector

_MASTER = "k8s://https://kubernetes.default.svc"


def objects(cluster: ClusterSpec, grid: GridSpec) -> list[Object]:
    """Return all objects of one grid epoch."""
    return [
        settings.spark(cluster, grid),
        _service(cluster, grid),
        _driver(cluster, grid),
        _budget(cluster, grid),
    ]


def _driver(cluster: ClusterSpec, grid: GridSpec) -> Object:
    about = f"Driver of grid {grid.epoch}: {grid.size.nodes} nodes in {grid.executors} executors"
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(cluster, "grid", grid.name, about, grid),
        "spec": {
            # Leases make a second driver harmless, but it would use the memory twice.
            "replicas": 1 if cluster.awake else 0,
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": selector(cluster, "grid", grid)},
            "template": {
                "metadata": {
                    "labels": labels(cluster, "grid", grid),
                    "annotations": {
                        "kubectl.kubernetes.io/default-container": "grid",
                        # A change of settings or secrets restarts the pod.
                        "rillbase.dev/settings": _fingerprint(cluster, grid),
                    },
                },
                "spec": _pod(cluster, grid),
            },
        },
    }


def _fingerprint(cluster: ClusterSpec, grid: GridSpec) -> str:
    contents = [settings.secret(cluster)["data"], settings.spark(cluster, grid)["data"]]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:16]


def _pod(cluster: ClusterSpec, grid: GridSpec) -> Object:
    spec = pods.basics(cluster, "grid", grid, DRIVER_ACCOUNT, calls_api=True)
    config: Object = {"name": "spark", "configMap": {"name": grid.name}}
    return {
        **spec,
        "terminationGracePeriodSeconds": 30,
        "containers": [_container(cluster, grid)],
        "volumes": [pods.SCRATCH, config, pods.SPARK_SECRET],
    }


def _container(cluster: ClusterSpec, grid: GridSpec) -> Object:
    container = pods.container(cluster, "grid")
    variables = [
        {"name": "RILLBASE_GRID", "value": "spark"},
        {"name": "RILLBASE_GRID_MASTER", "value": _MASTER},
        {"name": "SPARK_CONF_DIR", "value": settings.DIRECTORY},
        {"name": "SPARK_LOCAL_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    plain = container["env"]
    port = str(pods.HTTP_PORT)
    command = ["python", "manage.py", "grid", "--host", "0.0.0.0", "--port", port]  # noqa: S104
    config: Object = {"name": "spark", "mountPath": settings.DIRECTORY, "readOnly": True}
    return {
        **container,
        "command": [*command, "--epoch", str(grid.epoch)],
        "env": [*(plain if isinstance(plain, list) else []), *variables],
        "ports": [
            {"name": name, "containerPort": number, "protocol": "TCP"} for name, number in _PORTS
        ],
        **_probes(),
        "resources": pods.resources(
            DRIVER, guaranteed=cluster.guaranteed, burst_mib=DRIVER_BURST_MIB
        ),
        "volumeMounts": [*pods.SCRATCH_MOUNTS, config, pods.SPARK_SECRET_MOUNT],
    }


_PORTS = (("http", pods.HTTP_PORT), ("driver", pods.DRIVER_PORT), ("blocks", pods.BLOCKS_PORT))


def _probes() -> Object:
    """Return the probes: it may take minutes to start, and counts as dead after half a minute."""
    alive = {"httpGet": {"path": "/healthz", "port": "http"}}
    ready = {"httpGet": {"path": "/readyz", "port": "http"}}
    return {
        "startupProbe": {**alive, "periodSeconds": 2, "failureThreshold": 90},
        "livenessProbe": {**alive, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3},
        "readinessProbe": {**ready, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 2},
    }


def _service(cluster: ClusterSpec, grid: GridSpec) -> Object:
    about = "Headless service by which executors reach their driver"
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(cluster, "grid", grid.name, about, grid),
        "spec": {
            "clusterIP": "None",
            # Executors register before the grid is ready: it is ready once their nodes are.
            "publishNotReadyAddresses": True,
            "selector": selector(cluster, "grid", grid),
            "ports": [
                {"name": name, "port": number, "targetPort": name, "protocol": "TCP"}
                for name, number in _PORTS
            ],
        },
    }


def _budget(cluster: ClusterSpec, grid: GridSpec) -> Object:
    """Allow nodes to be drained one executor at a time. The pods belong to a pod and not to a
    controller, so the number that must remain is given explicitly.
    """
    about = "Nodes are drained one executor at a time"
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(cluster, "executor", f"{grid.name}-executors", about, grid),
        "spec": {
            "minAvailable": max(grid.executors - 1, 0) if cluster.awake else 0,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": selector(cluster, "executor", grid)},
        },
    }
