"""The matching grid with Kubernetes as Spark's master: its nodes run in pods that Spark makes.

The driver runs here, with the rights, the settings and the pod template of the chart; executors'
pods are processes that the stand-in for a kubelet starts by the image's own entry point.
"""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.error import URLError

import pytest
import redis
import yaml

from tests import machine
from tests.kube import spark
from tests.kube.rendering import MINIMAL
from tests.own_valkey import free_port
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kube.control_plane import ControlPlane
    from tests.kube.release import Installation

pytestmark = [pytest.mark.kube, pytest.mark.timeout(900)]
START_TIMEOUT_S = 400.0
VALUES = {**MINIMAL, "grid": {"master": "kubernetes", "executor": {"requestCpu": "100m"}}}


@dataclass
class Grid:
    """A grid that runs on a Kubernetes."""

    release: Installation
    url: str

    def kubectl(self, *arguments: str) -> str:
        return self.release.kubectl(*arguments)

    def executors(self) -> list[str]:
        return spark.executors(self.release)

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Return the reports of all nodes, or none while one of them does not watch."""
        try:
            with urllib.request.urlopen(f"{self.url}/status", timeout=10) as answer:
                body: dict[str, dict[str, Any]] = json.load(answer)["nodes"]
        except (URLError, OSError):
            return {}
        watching = len(body) == 3 and all(node["state"] == "running" for node in body.values())
        return body if watching else {}


@pytest.fixture
def grid(plane: ControlPlane, tmp_path: Path, valkey_url: str) -> Iterator[Grid]:
    from tests.kube.release import Installation

    machine.helm()
    with redis.Redis.from_url(valkey_url) as client:
        client.flushdb()
    installation, port = Installation(plane), free_port()
    with spark.driver_pod(installation, "grid", VALUES, tmp_path) as variables:
        there = {"RILLBASE_GRID": "spark", "RILLBASE_GRID_MASTER": f"k8s://{plane.url}"}
        with (
            spark.managed("relay", tmp_path, port=free_port()),
            spark.managed("grid", tmp_path, port=port, **variables, **there),
        ):
            yield Grid(installation, f"http://127.0.0.1:{port}")


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

        plane = grid.release.plane
        plane.signal("kube-apiserver", signal.SIGKILL)
        try:
            todos.insert({"_id": "c"})
            answer.until_shows([{"_id": "a"}, {"_id": "b"}, {"_id": "c"}])
            tokens = {name: node["token"] for name, node in grid.nodes().items()}
        finally:
            plane.start("kube-apiserver")
        todos.insert({"_id": "d"})
        answer.until_shows([{"_id": key} for key in "abcd"])
        assert {name: node["token"] for name, node in grid.nodes().items()} == tokens
