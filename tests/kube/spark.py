"""Spark on the real Kubernetes of the tests: what images do for its pods, done by this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import yaml

from tests.own_valkey import free_port

if TYPE_CHECKING:
    from tests.kube.control_plane import ControlPlane

ROOT = Path(__file__).resolve().parents[2]


def as_executor(pod: Any, given: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """What the image does for an executor's pod, with this machine's Java, Spark and servers."""
    from tests.kube.kubelet import machine_environment

    if (pod.metadata.labels or {}).get("spark-role") != "executor":
        return [], {}
    java = shutil.which("java")
    assert java is not None
    settings = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("RILLBASE_", "DATABASE_", "REDIS_", "STORAGE_"))
    }
    settings["EVENTS_URL"] = os.environ["REDIS_URL"]
    spark = {name: value for name, value in given.items() if name.startswith("SPARK_")}
    environment = machine_environment() | spark | settings
    environment["JAVA_HOME"] = str(Path(java).resolve().parents[1])
    environment["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    environment["SPARK_LOCAL_DIRS"] = "spark-local"
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "platform")])
    container = pod.spec.containers[0]
    return [str(ROOT / "images/spark-entrypoint.sh"), *container.args], environment


def lay_out(
    plane: ControlPlane, namespace: str, config_map: str, account: str, folder: Path
) -> dict[str, str]:
    """Lay out a config map's own files for a driver; only places and addresses are this machine's.

    Returns the variables that the driver needs, as its account.
    """

    def kubectl(*arguments: str) -> str:
        return plane.kubectl("--namespace", namespace, *arguments)

    found = yaml.safe_load(kubectl("get", "configmap", config_map, "-o", "yaml"))
    directory = folder / "spark"
    directory.mkdir()
    (directory / "token").write_text(kubectl("create", "token", account).strip())
    (directory / "pod.yaml").write_text(found["data"]["pod.yaml"])
    here = {
        "spark.kubernetes.executor.podTemplateFile": str(directory / "pod.yaml"),
        "spark.kubernetes.authenticate.oauthTokenFile": str(directory / "token"),
        "spark.kubernetes.authenticate.caCertFile": str(plane.certificate),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.port": str(free_port()),
        "spark.driver.blockManager.port": str(free_port()),
        "spark.executor.memoryOverhead": "384m",
    }
    lines = found["data"]["spark-defaults.conf"].splitlines()
    kept = [line for line in lines if line.split(" ")[0] not in here]
    text = "\n".join([*kept, *(f"{name} {value}" for name, value in here.items())])
    (directory / "spark-defaults.conf").write_text(text + "\n")
    return {
        "RILLBASE_GRID": "spark",
        "RILLBASE_GRID_MASTER": f"k8s://{plane.url}",
        "SPARK_CONF_DIR": str(directory),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
