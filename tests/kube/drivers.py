"""Runs the pods of tenants' drivers in processes of this machine."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
import requests

from tests.kube import spark
from tests.own_valkey import free_port

if TYPE_CHECKING:
    from tests.kube.control_plane import ControlPlane

ROOT = Path(__file__).resolve().parents[2]


class Drivers:
    """Runs drivers' pods as their image would: the epoch that the command names, in processes.

    They know only what their objects contain.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        #: The address of the newest driver, by epoch.
        self.ports: dict[str, int] = {}

    def __call__(self, pod: Any, given: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        from tests.kube.kubelet import machine_environment

        if (pod.metadata.labels or {}).get("app.kubernetes.io/component") != "grid":
            return [], {}
        command = pod.spec.containers[0].command
        epoch = command[command.index("--epoch") + 1]
        self.ports[epoch] = free_port()
        here = {
            "RILLBASE_DATA_DIR": os.environ["RILLBASE_DATA_DIR"],
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")]),
        }
        argv = [sys.executable, str(ROOT / "manage.py"), "grid", "--epoch", epoch]
        described = {**given, **self._secret(pod.metadata.namespace)}
        environment = {**described, **machine_environment(), **here, **self._launcher_settings(pod)}
        return [*argv, "--port", str(self.ports[epoch])], environment

    def _launcher_settings(self, pod: Any) -> dict[str, str]:
        """Return the settings of the launcher of nodes."""
        return {"RILLBASE_GRID": "processes", "RILLBASE_GRID_MASTER": ""}

    def _secret(self, namespace: str) -> dict[str, str]:
        command = ("--namespace", namespace, "get", "secret", "grid", "--output", "json")
        body = json.loads(self._plane.kubectl(*command))["data"]
        return {name: base64.b64decode(value).decode() for name, value in body.items()}

    def is_ready(self, epoch: int) -> bool:
        """Whether a driver says so itself."""
        url = f"http://127.0.0.1:{self.ports[str(epoch)]}/readyz"
        return bool(requests.get(url, timeout=10).ok)


class SparkDrivers(Drivers):
    """Real drivers: Spark creates their executors' pods, which are processes here as well."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        super().__init__(plane)
        self._folder = folder
        self.master = f"k8s://{plane.url}"

    def __call__(self, pod: Any, given: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        argv, environment = spark.as_executor(pod, given)
        return (argv, environment) if argv else super().__call__(pod, given)

    def _launcher_settings(self, pod: Any) -> dict[str, str]:
        """Use the objects' own settings of Spark, and the rights of the pod's own account. Only in
        a cluster does the API server's name resolve.
        """
        namespace, account = pod.metadata.namespace, pod.spec.service_account_name
        (config,) = [volume.config_map.name for volume in pod.spec.volumes if volume.config_map]
        folder = self._folder / pod.metadata.name
        folder.mkdir()
        variables = spark.lay_out(self._plane, namespace, config, account, folder)
        return {**variables, "RILLBASE_GRID_MASTER": self.master}


@contextlib.contextmanager
def running_drivers(
    drivers: Drivers, plane: ControlPlane, folder: Path, valkey_url: str
) -> Iterator[None]:
    """Run a relay, and a node on which drivers really run."""
    from tests.kube.kubelet import Kubelet
    from tests.realtime.live.conftest import BackgroundProcesses

    with redis.Redis.from_url(valkey_url) as client:
        client.flushdb()
        background = BackgroundProcesses(client)
        background.start("relay")
        (folder / "pods").mkdir()
        kubelet = Kubelet(plane, folder / "pods", drivers)
        try:
            yield
        finally:
            kubelet.close()
            background.close()
