"""The chart in a real cluster: installed, upgraded, rolled back and uninstalled by a real helm."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests import machine
from tests.kube.release import CLAIMS, Installation
from tests.kube.rendering import CHART, MINIMAL
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.kube.control_plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.timeout(900)]
WAIT = ("--wait", "--wait-for-jobs", "--timeout", "300s")
KINDS = (
    "deployments,statefulsets,jobs,services,configmaps,serviceaccounts,poddisruptionbudgets,"
    "horizontalpodautoscalers,networkpolicies,ingresses,roles,rolebindings"
)


@pytest.fixture
def installation(plane: ControlPlane, tmp_path: Path) -> Iterator[Installation]:
    machine.helm()
    from tests.kube.kubelet import Kubelet

    kubelet = Kubelet(plane, tmp_path)
    yield Installation(plane)
    kubelet.close()


def ready_pods(installation: Installation) -> list[str]:
    pods = yaml.safe_load(installation.kubectl("get", "pods", "--output", "yaml"))["items"]
    return sorted(
        pod["metadata"]["labels"]["app.kubernetes.io/component"]
        for pod in pods
        if pod["status"].get("phase") == "Running"
    )


def test_a_release_lives_from_install_to_uninstall(installation: Installation) -> None:
    installation.helm("install", "rb", str(CHART), *WAIT, values=MINIMAL)
    servers = ["postgresql", "storage-node", "valkey-broker", "valkey-events"]
    twice = ["app", "relay", "sources", "views", "worker"]
    ours = ["beat", "grid", *(2 * twice)]
    # The second app server is the autoscaler's, which looks every fifteen seconds.
    wait_until(lambda: ready_pods(installation) == sorted(ours + servers), what="all pods")
    assert installation.names("jobs") == ["job.batch/rb-rillbase-migrations-1"]
    secret = installation.secret()
    assert len(secret["secret-key"]) == 48
    assert len(set(secret.values())) == len(secret)

    assert "Succeeded" in installation.helm("test", "rb")

    installation.helm(
        "upgrade", "rb", str(CHART), *WAIT, values={**MINIMAL, "worker": {"replicas": 3}}
    )
    assert ready_pods(installation).count("worker") == 3
    assert installation.names("jobs") == ["job.batch/rb-rillbase-migrations-2"]
    assert installation.secret() == secret

    installation.helm("rollback", "rb", "1", *WAIT)
    wait_until(lambda: ready_pods(installation).count("worker") == 2, what="two workers")
    assert installation.secret() == secret

    installation.helm("uninstall", "rb", "--wait", "--timeout", "300s")
    left = [
        name
        for name in installation.names(KINDS)
        if name not in ("configmap/kube-root-ca.crt", "serviceaccount/default")
    ]
    assert left == []
    assert installation.secret() == secret
    claims = installation.names("persistentvolumeclaims")
    assert claims == [f"persistentvolumeclaim/{name}" for name in CLAIMS]

    installation.helm("install", "rb", str(CHART), *WAIT, values=MINIMAL)
    assert installation.secret() == secret


def test_every_object_of_every_values_is_admitted(installation: Installation) -> None:
    """The API server itself takes what only schemas were asked about so far."""
    from tests.kube.rendering import MATRIX

    for name in ("external servers", "own secret", "small"):
        installation.helm("install", "rb", str(CHART), "--dry-run=server", values=MATRIX[name])
    everything = {
        **MATRIX["everything"],
        "gateway": {"enabled": False},
        "metrics": {"dashboards": {"enabled": True}},
    }
    installation.helm("install", "rb", str(CHART), values=everything)
    wait_until(lambda: "grid" in ready_pods(installation), what="the grid's pod")
    installation.helm("uninstall", "rb")


@pytest.mark.parametrize(
    ("driver", "values"),
    [
        ("grid", {"grid": {"master": "kubernetes"}}),
        ("pipeline", {"analytics": {"enabled": True, "pipeline": {"master": "kubernetes"}}}),
    ],
)
def test_a_driver_may_do_what_spark_needs_and_nothing_else(
    installation: Installation, driver: str, values: dict[str, Any]
) -> None:
    installation.helm("install", "rb", str(CHART), values={**MINIMAL, **values})
    account = f"system:serviceaccount:{installation.namespace}:rb-rillbase-{driver}"

    def may(verb: str, kind: str, namespace: str, *more: str) -> bool:
        command = ("auth", "can-i", verb, kind, "--as", account, "--namespace", namespace, *more)
        try:
            return installation.plane.kubectl(*command).strip() == "yes"
        except subprocess.CalledProcessError:
            return False

    for verb in ("get", "list", "watch", "create", "delete", "deletecollection"):
        assert may(verb, "pods", installation.namespace), verb
        assert not may(verb, "pods", "default"), verb
        for kind in ("secrets", "configmaps", "services", "deployments", "rolebindings"):
            assert not may(verb, kind, installation.namespace), (verb, kind)
    for verb in ("update", "patch"):
        assert not may(verb, "pods", installation.namespace), verb
    assert not may("create", "pods", installation.namespace, "--subresource=exec")
    installation.helm("uninstall", "rb")
