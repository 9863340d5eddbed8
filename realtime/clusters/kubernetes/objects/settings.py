"""The configuration of a grid's processes: secrets, and Spark's settings for executors."""

from __future__ import annotations

import base64
import json

from realtime.clusters.kubernetes.cluster_spec import NODES_OF_EXECUTOR, ClusterSpec, GridSpec
from realtime.clusters.kubernetes.objects import pods
from realtime.clusters.kubernetes.objects.accounts import EXECUTOR_ACCOUNT
from realtime.clusters.kubernetes.objects.naming import Object, labels, metadata

DIRECTORY = "/etc/rillbase/spark"
_ACCOUNT_FILES = "/var/run/secrets/kubernetes.io/serviceaccount"


def secret(cluster: ClusterSpec) -> Object:
    """Return the secret: each key is the variable that the processes read."""
    encoded = {
        name: base64.b64encode(value.encode()).decode()
        for name, value in sorted(cluster.secrets.items())
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(
            cluster, "settings", pods.SECRET, "Credentials of the nodes for the servers"
        ),
        "type": "Opaque",
        "data": encoded,
    }


def spark(cluster: ClusterSpec, grid: GridSpec) -> Object:
    """Return Spark's settings, and the pod template for executors."""
    lines = [f"{name} {value}" for name, value in spark_settings(cluster, grid).items()]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(
            cluster, "grid", grid.name, "Configuration with which Spark creates executors", grid
        ),
        "data": {
            "spark-defaults.conf": "\n".join(lines) + "\n",
            # JSON is YAML.
            "pod.yaml": json.dumps(executor(cluster, grid), indent=2, sort_keys=True) + "\n",
        },
    }


def spark_settings(cluster: ClusterSpec, grid: GridSpec) -> dict[str, str]:
    """Return the content of `spark-defaults.conf`."""
    size = cluster.size
    settings = {
        "spark.kubernetes.namespace": cluster.namespace,
        "spark.kubernetes.container.image": cluster.image,
        "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
        "spark.kubernetes.executor.podTemplateFile": f"{DIRECTORY}/pod.yaml",
        "spark.kubernetes.executor.podTemplateContainerName": "executor",
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.executor.request.cores": f"{size.cpu_milli}m",
        "spark.kubernetes.authenticate.oauthTokenFile": f"{_ACCOUNT_FILES}/token",
        "spark.kubernetes.authenticate.caCertFile": f"{_ACCOUNT_FILES}/ca.crt",
        # Executors belong to the driver's pod and are deleted with it.
        "spark.kubernetes.driver.pod.name": "${env:POD_NAME}",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.driver.host": f"{grid.name}.{cluster.namespace}.svc",
        "spark.driver.bindAddress": "0.0.0.0",  # noqa: S104 -- the pod's own
        "spark.driver.port": str(pods.DRIVER_PORT),
        "spark.driver.blockManager.port": str(pods.BLOCKS_PORT),
        "spark.executor.instances": str(grid.executors),
        "spark.executor.cores": str(NODES_OF_EXECUTOR),
        "spark.executor.memory": f"{size.heap_mib}m",
        "spark.executor.memoryOverhead": f"{size.overhead_mib}m",
        # A file, so that the secret is in no pod's description.
        "spark.authenticate.secret.file": f"{pods.SPARK_SECRET_FOLDER}/spark-secret",
        # Jobs are submitted at once and run as soon as there is an executor.
        "spark.scheduler.minRegisteredResourcesRatio": "0",
    }
    if cluster.guaranteed:
        settings["spark.kubernetes.executor.limit.cores"] = f"{size.cpu_milli}m"
    return settings


def executor(cluster: ClusterSpec, grid: GridSpec) -> Object:
    """Return the pod template for executors. It only refers to secrets, since pods are visible."""
    spec = pods.basics(cluster, "executor", grid, EXECUTOR_ACCOUNT, calls_api=False)
    mounts = [*pods.SCRATCH_MOUNTS, pods.SPARK_SECRET_MOUNT]
    container = pods.container(cluster, "executor") | {"volumeMounts": mounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": labels(cluster, "executor", grid)},
        "spec": {**spec, "containers": [container], "volumes": [pods.SCRATCH, pods.SPARK_SECRET]},
    }
