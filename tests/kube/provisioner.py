"""The provisioner of tenants' clusters, with the rights that the chart gives it and no others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from tests.kube.rendering import MINIMAL, Object, Release, template
from tests.waiting import wait_until

if TYPE_CHECKING:
    from realtime.clusters.kubernetes.server import ApiServer
    from tests.kube.control_plane import ControlPlane


class Provisioner:
    """An installation's provisioner in a real cluster. Its rights can be taken from it."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self.plane, self.name = plane, name
        self.namespace = f"{name}-home"
        values = {**MINIMAL, "clusters": {"enabled": True, "name": name}}
        done = template(values, namespace=self.namespace)
        assert done.returncode == 0, done.stderr
        self.release = Release(
            [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]
        )
        self.account = f"{name}-provisioner"
        plane.kubectl("create", "namespace", self.namespace)
        for manifest in self._objects():
            plane.apply(manifest)
        token = plane.kubectl("--namespace", self.namespace, "create", "token", self.account)
        self.token = token.strip()
        wait_until(self._is_kept_in, what="the admission policy to be in force")

    def _objects(self) -> list[Object]:
        result = self.release.of(
            "ClusterRole",
            "ClusterRoleBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        )
        accounts = self.release.of("ServiceAccount")
        return [
            *result,
            *(account for account in accounts if account["metadata"]["name"] == self.account),
        ]

    def _is_kept_in(self) -> bool:
        from realtime.clusters.kubernetes.server import ApiServerRejection

        outside: Any = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}}
        try:
            self.server().apply(outside, dry_run=True)
        except ApiServerRejection as refused:
            return "may change only" in refused.message
        return False

    def server(self) -> ApiServer:
        """Return the API server as this account sees it."""
        from realtime.clusters.kubernetes.server import ApiServer

        return ApiServer(self.plane.api(self.token))

    def rules(self, role: str) -> list[Object]:
        """Return the rules of one of the account's roles in the chart."""
        (cluster_role,) = [
            manifest
            for manifest in self.release.of("ClusterRole")
            if manifest["metadata"]["name"] == f"{self.name}-{role}"
        ]
        rules: list[Object] = cluster_role["rules"]
        return rules

    def give(self, role: str, rules: list[Object]) -> None:
        """Replace the rules of one of the account's roles."""
        change = json.dumps({"rules": rules})
        self.plane.kubectl("patch", "clusterrole", f"{self.name}-{role}", "--patch", change)
