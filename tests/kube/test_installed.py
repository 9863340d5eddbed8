"""The chart in a real cluster: installed, upgraded, rolled back and uninstalled by a real helm."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from scripts import kube_tools
from tests.kube.rendering import CHART, MINIMAL
from tests.make import unique
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.kube.control_plane import ControlPlane

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
WAIT = ("--wait", "--wait-for-jobs", "--timeout", "300s")
#: Objects that the chart makes and that must be gone when it is uninstalled.
CLAIMS = (
    "data-rb-rillbase-postgresql-0",
    "data-rb-rillbase-storage-node-0",
    "data-rb-rillbase-valkey-broker-0",
)
KINDS = (
    "deployments,statefulsets,jobs,services,configmaps,serviceaccounts,poddisruptionbudgets,"
    "horizontalpodautoscalers,networkpolicies,ingresses,roles,rolebindings"
)


class Installation:
    """A release called `rb` in a namespace of its own that admits only restricted pods."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane, self.namespace = plane, unique("data")
        plane.kubectl("create", "namespace", self.namespace)
        enforced = "pod-security.kubernetes.io/enforce=restricted"
        plane.kubectl("label", "namespace", self.namespace, enforced)
        for claim in CLAIMS:
            self._offer(claim)

    def _offer(self, claim: str) -> None:
        """Make a volume for a claim: nobody provides any here."""
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{self.namespace}-{claim}"},
            "spec": {
                "capacity": {"storage": "20Gi"},
                "accessModes": ["ReadWriteOnce"],
                "claimRef": {"namespace": self.namespace, "name": claim},
                "hostPath": {"path": f"/nonexistent/{claim}"},
            },
        }
        self.plane.apply(volume)

    def helm(self, *arguments: str, values: Mapping[str, Any] | None = None) -> str:
        command = [str(kube_tools.helm()), "--kubeconfig", str(self.plane.kubeconfig)]
        command += ["--namespace", self.namespace, *arguments]
        if values is not None:
            command += ["--values", "-"]
        done = subprocess.run(
            command,
            input=yaml.safe_dump(dict(values or {})),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr + self.kubectl("get", "pods,jobs,events")
        return done.stdout

    def kubectl(self, *arguments: str) -> str:
        return self.plane.kubectl("--namespace", self.namespace, *arguments)

    def names(self, kinds: str) -> list[str]:
        return self.kubectl("get", kinds, "--output", "name").split()

    def secret(self) -> dict[str, str]:
        found = yaml.safe_load(self.kubectl("get", "secret", "rb-rillbase-secrets", "-o", "yaml"))
        return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}


@pytest.fixture
def installation(plane: ControlPlane, tmp_path: Path) -> Iterator[Installation]:
    if kube_tools.helm() is None:
        pytest.skip("helm is not here: python -m scripts.kube_tools helm")
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
    ours = ["app", "app", "beat", "grid", *(2 * ["relay"]), *(2 * ["views"]), *(2 * ["worker"])]
    # The second app server is the autoscaler's, which looks every fifteen seconds.
    wait_until(lambda: ready_pods(installation) == sorted(ours + servers), what="all pods")
    assert installation.names("jobs") == ["job.batch/rb-rillbase-migrations-1"]
    made = installation.secret()
    assert len(made["secret-key"]) == 48
    assert len(set(made.values())) == len(made)

    assert "Succeeded" in installation.helm("test", "rb")

    installation.helm(
        "upgrade", "rb", str(CHART), *WAIT, values={**MINIMAL, "worker": {"replicas": 3}}
    )
    assert ready_pods(installation).count("worker") == 3
    assert installation.names("jobs") == ["job.batch/rb-rillbase-migrations-2"]
    assert installation.secret() == made

    installation.helm("rollback", "rb", "1", *WAIT)
    wait_until(lambda: ready_pods(installation).count("worker") == 2, what="two workers")
    assert installation.secret() == made

    installation.helm("uninstall", "rb", "--wait", "--timeout", "300s")
    left = [
        name
        for name in installation.names(KINDS)
        if name not in ("configmap/kube-root-ca.crt", "serviceaccount/default")
    ]
    assert left == []
    assert installation.secret() == made
    claims = installation.names("persistentvolumeclaims")
    assert claims == [f"persistentvolumeclaim/{each}" for each in CLAIMS]

    installation.helm("install", "rb", str(CHART), *WAIT, values=MINIMAL)
    assert installation.secret() == made


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
def test_a_driver_may_do_what_spark_asks_and_nothing_else(
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
