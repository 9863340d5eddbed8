"""Spark on the tests' Kubernetes: processes of this machine run in place of its images."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import yaml

from tests.kube.rendering import CHART
from tests.own_valkey import free_port

if TYPE_CHECKING:
    from tests.kube.control_plane import ControlPlane
    from tests.kube.release import Installation

ROOT = Path(__file__).resolve().parents[2]


def as_executor(pod: Any, given: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Run an executor's pod as its image would, with this machine's Java, Spark and servers."""
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


@contextmanager
def driver_pod(
    release: Installation, part: str, values: Mapping[str, Any], folder: Path
) -> Iterator[dict[str, str]]:
    """Install a release whose `part` has executors' pods. Yield what its driver needs to be told.

    The driver itself runs on this machine; its own pod, which executors belong to, only seems to.
    """
    from tests.kube.kubelet import Kubelet

    account = f"rb-rillbase-{part}"
    (folder / "pods").mkdir()
    kubelet = Kubelet(release.plane, folder / "pods", as_executor)
    try:
        # Servers are those of the tests; only rights and settings are taken from the release.
        release.helm("install", "rb", str(CHART), values=values)
        created = release.kubectl("get", "deployment", account, "-o", "yaml")
        template = yaml.safe_load(created)["spec"]["template"]["spec"]
        driver = {"apiVersion": "v1", "kind": "Pod", "spec": {**template, "initContainers": []}}
        name = {"name": "driver", "namespace": release.namespace}
        release.plane.apply({**driver, "metadata": name})
        variables = lay_out(release.plane, release.namespace, f"{account}-spark", account, folder)
        yield {**variables, "POD_NAME": "driver"}
    finally:
        kubelet.close()


def executors(release: Installation) -> list[str]:
    return release.kubectl("get", "pods", "-l", "spark-role=executor", "-o", "name").split()


@contextmanager
def managed(command: str, folder: Path, *, port: int, **more: str) -> Iterator[None]:
    """Run `manage.py COMMAND` on this machine."""
    path = folder / f"{command}.log"
    with path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", command, "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, **more},
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def lay_out(
    plane: ControlPlane, namespace: str, config_map: str, account: str, folder: Path
) -> dict[str, str]:
    """Lay out a config map's own files for a driver; only places and addresses are this machine's.

    Returns the variables that the driver needs, as its account.
    """

    def kubectl(*arguments: str) -> str:
        return plane.kubectl("--namespace", namespace, *arguments)

    manifest = yaml.safe_load(kubectl("get", "configmap", config_map, "-o", "yaml"))
    directory = folder / "spark"
    directory.mkdir()
    (directory / "token").write_text(kubectl("create", "token", account).strip())
    (directory / "pod.yaml").write_text(manifest["data"]["pod.yaml"])
    secret = directory / "spark-secret"
    secret.write_text(secrets.token_hex())
    here = {
        "spark.authenticate.secret.file": str(secret),
        "spark.kubernetes.executor.podTemplateFile": str(directory / "pod.yaml"),
        "spark.kubernetes.authenticate.oauthTokenFile": str(directory / "token"),
        "spark.kubernetes.authenticate.caCertFile": str(plane.certificate),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.port": str(free_port()),
        "spark.driver.blockManager.port": str(free_port()),
        "spark.executor.memoryOverhead": "384m",
    }
    lines = manifest["data"]["spark-defaults.conf"].splitlines()
    kept = [line for line in lines if line.split(" ")[0] not in here]
    text = "\n".join([*kept, *(f"{name} {value}" for name, value in here.items())])
    (directory / "spark-defaults.conf").write_text(text + "\n")
    return {"SPARK_CONF_DIR": str(directory), "SPARK_LOCAL_IP": "127.0.0.1"}
