"""The matching grid with Kubernetes as Spark's master: its nodes run in pods that Spark makes.

The driver runs here, with the rights, the settings and the pod template of the chart; executors'
pods are processes that the stand-in for a kubelet starts by the image's own entry point.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError

import pytest
import redis
import yaml

from scripts import kube_tools
from tests.kube import spark
from tests.kube.rendering import CHART, MINIMAL
from tests.make import unique
from tests.own_valkey import free_port
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.kube.control_plane import ControlPlane

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 400.0
RELEASE = "rb"
#: The driver's own pod, which executors belong to; here it only seems to run.
DRIVER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "serviceAccountName": "rb-rillbase-grid",
        "automountServiceAccountToken": False,
        "containers": [{"name": "driver", "image": "rillbase/spark:0.1.0"}],
    },
}


@dataclass
class Grid:
    """A grid that runs on a Kubernetes."""

    plane: ControlPlane
    namespace: str
    url: str

    def kubectl(self, *arguments: str) -> str:
        return self.plane.kubectl("--namespace", self.namespace, *arguments)

    def executors(self) -> list[str]:
        return self.kubectl("get", "pods", "-l", "spark-role=executor", "-o", "name").split()

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Return the reports of all nodes, or none while one of them does not watch."""
        try:
            with urllib.request.urlopen(f"{self.url}/status", timeout=10) as answer:
                found: dict[str, dict[str, Any]] = json.load(answer)["nodes"]
        except (URLError, OSError):
            return {}
        watching = len(found) == 3 and all(node["state"] == "running" for node in found.values())
        return found if watching else {}


@pytest.fixture
def grid(plane: ControlPlane, tmp_path: Path, valkey_url: str) -> Iterator[Grid]:
    from tests.kube.kubelet import Kubelet

    if kube_tools.helm() is None:
        pytest.skip("helm is not here: python -m scripts.kube_tools helm")
    with redis.Redis.from_url(valkey_url) as client:
        client.flushdb()
    namespace = unique("grid")
    made = Grid(plane, namespace, f"http://127.0.0.1:{free_port()}")
    plane.kubectl("create", "namespace", namespace)
    (tmp_path / "pods").mkdir()
    kubelet = Kubelet(plane, tmp_path / "pods", spark.as_executor)
    _install(made)
    plane.apply({**DRIVER, "metadata": {"name": "driver", "namespace": namespace}})
    processes = [_manage("relay", tmp_path, port=free_port())]
    told = spark.lay_out(plane, namespace, "rb-rillbase-grid-spark", "rb-rillbase-grid", tmp_path)
    variables = {**told, "POD_NAME": "driver"}
    port = int(made.url.rpartition(":")[2])
    processes.append(_manage("grid", tmp_path, port=port, **variables))
    try:
        yield made
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
        for process in processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
        kubelet.close()
        print((tmp_path / "grid.log").read_text()[-6000:])  # noqa: T201 -- shown when it failed


def _install(grid: Grid) -> None:
    # The storage node is a server of the tests: what is of use here are rights and settings.
    command = [str(kube_tools.helm()), "--kubeconfig", str(grid.plane.kubeconfig)]
    command += ["--namespace", grid.namespace, "install", RELEASE, str(CHART), "--values", "-"]
    values = {**MINIMAL, "grid": {"master": "kubernetes", "executor": {"requestCpu": "100m"}}}
    subprocess.run(
        command, input=yaml.safe_dump(values), text=True, check=True, stdout=subprocess.DEVNULL
    )


def _manage(command: str, folder: Path, *, port: int, **more: str) -> subprocess.Popen[bytes]:
    with (folder / f"{command}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "manage.py", command, "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, **more},
            stdout=log,
            stderr=log,
        )


def test_nodes_run_in_pods_that_heal_and_need_no_api_server_meanwhile(
    grid: Grid, server: str
) -> None:
    from tests.documents.collection import make_collection
    from tests.realtime.client import greeted
    from tests.realtime.live.answer import subscribe

    todos = make_collection(server)
    key = todos.caller.headers["Authorization"].removeprefix("Bearer ")
    wait_until(lambda: bool(grid.nodes()), what="all nodes", timeout_s=START_TIMEOUT_S)
    before = grid.nodes()
    executors = grid.executors()
    assert len(executors) == 2
    pods = yaml.safe_load(grid.kubectl("get", *executors, "-o", "yaml"))["items"]
    for pod in pods:
        owner = pod["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"]) == ("Pod", "driver")
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        shown = json.dumps(pod)
        assert os.environ["RILLBASE_SECRET_KEY"] not in shown

    with greeted(server, key) as client:
        answer = subscribe(client, "s", collection=todos.name)
        todos.insert({"_id": "a"})
        answer.until_shows([{"_id": "a"}], timeout_s=START_TIMEOUT_S)

        grid.kubectl("delete", *executors, "--wait=false")
        wait_until(
            lambda: all(
                grid.nodes().get(name, node)["token"] != node["token"]
                for name, node in before.items()
            ),
            what="all nodes to be back in other pods",
            timeout_s=START_TIMEOUT_S,
        )
        assert not set(executors) & set(grid.executors())
        todos.insert({"_id": "b"})
        answer.until_shows([{"_id": "a"}, {"_id": "b"}], timeout_s=START_TIMEOUT_S)

        grid.plane.signal("kube-apiserver", signal.SIGKILL)
        try:
            todos.insert({"_id": "c"})
            answer.until_shows([{"_id": "a"}, {"_id": "b"}, {"_id": "c"}])
            tokens = {name: node["token"] for name, node in grid.nodes().items()}
        finally:
            grid.plane.start("kube-apiserver")
        todos.insert({"_id": "d"})
        answer.until_shows([{"_id": each} for each in "abcd"])
        assert {name: node["token"] for name, node in grid.nodes().items()} == tokens
