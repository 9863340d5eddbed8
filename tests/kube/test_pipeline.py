"""The analytics pipeline with Kubernetes as Spark's master: stages run in pods that Spark makes.

As with the grid, the driver runs here with the rights, the settings and the pod template of the
chart, and executors' pods are processes started by the image's own entry point.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
import yaml

from tests import machine
from tests.analytics.dataset_client import make_dataset
from tests.analytics.test_id_keys import WEB
from tests.kube import spark
from tests.kube.rendering import MINIMAL
from tests.own_valkey import free_port
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.analytics.dataset_client import DatasetClient
    from tests.kube.control_plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.timeout(900)]
START_TIMEOUT_S = 400.0
EXECUTORS = 2
VALUES = {
    **MINIMAL,
    "analytics": {
        "enabled": True,
        "pipeline": {
            "master": "kubernetes",
            "executor": {"count": EXECUTORS, "requestCpu": "100m"},
        },
    },
}
SETTINGS = {"RILLBASE_ANALYTICS_BATCH_AGE_S": "0", "RILLBASE_ANALYTICS_AUTHORITY_AGE_S": "1"}


def send(web: DatasetClient, first: int) -> None:
    """Upload links between ten pages, three uploads from `first` on."""
    for number in range(first, first + 3):
        links = [{"from": f"/{number}", "to": f"/{n}", "weight": n} for n in range(10)]
        web.upload(*({"links": link} for link in links))


def wait_for(web: DatasetClient, state: int) -> None:
    wait_until(
        lambda: web.query("links", freshness="any")["state"] == state,
        what="the authority to have every upload",
        timeout_s=START_TIMEOUT_S,
    )
    assert len(web.rows("links", freshness="any")) == state * 10
    keys = web.rows("page", freshness="any", order=[["id", 1]])
    assert [key["id"] for key in keys] == list(range(10))


def test_stages_run_in_pods_and_are_done_again_where_one_is_deleted(
    plane: ControlPlane, server: str, tmp_path: Path
) -> None:
    from tests.kube.release import Installation

    machine.helm()
    release = Installation(plane)
    release.offer("rb-rillbase-analytics", capacity="100Gi", mode="ReadWriteMany")
    web = make_dataset(server, **WEB)
    with spark.driver_pod(release, "pipeline", VALUES, tmp_path) as variables:
        there = {
            "RILLBASE_ANALYTICS_WORKERS": "spark",
            "RILLBASE_ANALYTICS_MASTER": f"k8s://{plane.url}",
        }
        with spark.managed(
            "pipeline", tmp_path, port=free_port(), **variables, **there, **SETTINGS
        ):
            send(web, 0)
            wait_for(web, 3)
            before = spark.executors(release)
            pods = yaml.safe_load(release.kubectl("get", *before, "-o", "yaml"))["items"]
            for pod in pods:
                owner = pod["metadata"]["ownerReferences"][0]
                assert (owner["kind"], owner["name"]) == ("Pod", "driver")
                mounts = [mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]]
                assert "analytics" in mounts
                assert os.environ["RILLBASE_SECRET_KEY"] not in json.dumps(pod)
            release.kubectl("delete", *before, "--wait=false")
            send(web, 3)
            wait_for(web, 6)
            wait_until(
                lambda: len(set(spark.executors(release)) - set(before)) == EXECUTORS,
                what="other pods in their place",
                timeout_s=START_TIMEOUT_S,
            )
