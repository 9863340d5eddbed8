"""Releases of the chart on the real Kubernetes of the tests."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from scripts import kube_tools
from tests.make import unique

if TYPE_CHECKING:
    from tests.kube.control_plane import ControlPlane

#: Volume claims of the chart that remain when it is uninstalled.
CLAIMS = (
    "data-rb-rillbase-postgresql-0",
    "data-rb-rillbase-storage-node-0",
    "data-rb-rillbase-valkey-broker-0",
)


class Installation:
    """A release called `rb` in a namespace of its own that admits only restricted pods."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane, self.namespace = plane, unique("data")
        plane.kubectl("create", "namespace", self.namespace)
        enforced = "pod-security.kubernetes.io/enforce=restricted"
        plane.kubectl("label", "namespace", self.namespace, enforced)
        for claim in CLAIMS:
            self.offer(claim)

    def offer(self, claim: str, *, capacity: str = "20Gi", mode: str = "ReadWriteOnce") -> None:
        """Create a volume for a claim: there is no provisioner of volumes here."""
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{self.namespace}-{claim}"},
            "spec": {
                "capacity": {"storage": capacity},
                "accessModes": [mode],
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
        assert done.returncode == 0, "\n".join(
            (done.stderr, self.kubectl("get", "pods,jobs,events"), self.plane.problems())
        )
        return done.stdout

    def kubectl(self, *arguments: str) -> str:
        return self.plane.kubectl("--namespace", self.namespace, *arguments)

    def names(self, kinds: str) -> list[str]:
        return self.kubectl("get", kinds, "--output", "name").split()

    def secret(self) -> dict[str, str]:
        manifest = yaml.safe_load(
            self.kubectl("get", "secret", "rb-rillbase-secrets", "-o", "yaml")
        )
        return {key: base64.b64decode(value).decode() for key, value in manifest["data"].items()}
