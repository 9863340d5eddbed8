"""No pod of the chart may do more than it needs: Pod Security's "restricted" level, and
stricter.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from tests.kube.rendering import (
    Object,
    Release,
    containers,
    every_values,
    labels_of_pods,
    matches,
    rendered,
)

pytestmark = pytest.mark.kube
ALLOWED_VOLUMES = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
#: The parts that call the API server.
CALLS_THE_API = {"grid", "pipeline", "provisioner"}


@every_values
def test_pods_keep_to_restricted_pod_security(name: str) -> None:
    for part, pod in rendered(name).pods():
        spec = pod["spec"]
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), part
        assert spec["securityContext"]["runAsNonRoot"] is True, part
        assert spec["securityContext"]["runAsUser"] >= 10_000, part
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, part
        for volume in spec.get("volumes", []):
            assert set(volume) - {"name"} <= ALLOWED_VOLUMES, part
        for container in containers(pod):
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False, part
            assert security["capabilities"] == {"drop": ["ALL"]}, part
            assert "hostPort" not in str(container.get("ports", [])), part


@every_values
def test_root_file_systems_are_read_only(name: str) -> None:
    for part, pod in rendered(name).pods():
        for container in containers(pod):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True, part


@every_values
def test_every_container_has_resource_requests_and_limits(name: str) -> None:
    for part, pod in rendered(name).pods():
        if part.endswith("executor"):  # Spark sets them
            continue
        for container in containers(pod):
            resources = container["resources"]
            assert set(resources["requests"]) >= {"cpu", "memory"}, part
            assert "memory" in resources["limits"], part


@every_values
def test_every_long_running_pod_has_all_probes(name: str) -> None:
    release = rendered(name)
    for manifest in release.of("Deployment", "StatefulSet"):
        for container in manifest["spec"]["template"]["spec"]["containers"]:
            probes = {"startupProbe", "livenessProbe", "readinessProbe"}
            assert probes <= set(container), manifest["metadata"]["name"]


@every_values
def test_the_api_servers_token_is_only_where_it_is_used(name: str) -> None:
    for part, pod in rendered(name).pods():
        assert not pod["spec"]["automountServiceAccountToken"] or part in CALLS_THE_API, part
    if name == "minimal":
        assert rendered(name).of("Role", "ClusterRole") == []


@every_values
def test_images_are_named_in_full_and_never_latest(name: str) -> None:
    for part, pod in rendered(name).pods():
        for container in containers(pod):
            assert re.search(r"(:(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})$", container["image"]), (
                part
            )


def calls(pod: Object) -> set[tuple[str, int]]:
    """Return the servers that a pod's settings and arguments name, and their ports."""
    missing = set()
    for container in containers(pod):
        texts = [str(variable.get("value", "")) for variable in container.get("env", [])]
        texts += container.get("command", [])
        for text in texts:
            parts = urlsplit(text.replace("$(", "").replace(")", ""))
            if parts.hostname and parts.hostname.startswith("rb-"):
                missing.add((parts.hostname, parts.port or 80))
    return missing


def allows(policy: Object, way: str, pod: Object, peer: Object, port: int) -> bool:
    """Whether a policy lets a pod go to, or be called by, a peer at a port."""
    if not matches(policy["spec"]["podSelector"], pod):
        return False
    side = "from" if way == "ingress" else "to"
    for rule in policy["spec"].get(way, []):
        peers = rule.get(side)
        meant = peers is None or any(
            "podSelector" in entry and matches(entry["podSelector"], peer) for entry in peers
        )
        ports = rule.get("ports")
        if meant and (ports is None or port in [entry["port"] for entry in ports]):
            return True
    return False


def is_open(release: Release, caller: Object, server: Object, port: int) -> bool:
    policies = release.of("NetworkPolicy")
    goes_out = any(allows(policy, "egress", caller, server, port) for policy in policies)
    comes_in = any(allows(policy, "ingress", server, caller, port) for policy in policies)
    return goes_out and comes_in


@pytest.mark.parametrize("name", ["minimal", "everything", "own secret"])
def test_every_way_that_is_needed_is_open_on_both_sides(name: str) -> None:
    release = rendered(name)
    pods = labels_of_pods(release)
    services = {service["metadata"]["name"]: service for service in release.of("Service")}
    for part, pod in release.pods():
        for host, port in calls(pod):
            service = services[host.split(".")[0]]
            server = service["spec"]["selector"]["app.kubernetes.io/component"]
            (target,) = (
                item["containerPort"]
                for other, template in release.pods()
                if other == server
                for container in containers(template)
                for item in container.get("ports", [])
                for way in service["spec"]["ports"]
                if way["port"] == port and way["targetPort"] == item["name"]
            )
            assert is_open(release, pods[part], pods[server], target), (part, host, port)


def test_no_other_pod_can_connect_to_the_servers() -> None:
    release = rendered("minimal")
    pods = labels_of_pods(release)
    stranger = {"app.kubernetes.io/name": "stranger"}
    for server, port in (("postgresql", 5432), ("valkey-broker", 6379), ("storage-node", 6390)):
        policies = release.of("NetworkPolicy")
        assert not any(allows(e, "ingress", pods[server], stranger, port) for e in policies)
        assert not is_open(release, pods["postgresql"], pods["storage-node"], 6390)


def test_drivers_of_tenants_grids_have_the_rights_of_the_shared_one() -> None:
    release = rendered("everything")
    shared, own = release.one("Role", "-grid"), release.one("ClusterRole", "-driver")
    assert own["rules"] == shared["rules"]


def test_the_provisioner_may_bind_two_roles_and_write_none() -> None:
    release = rendered("everything")
    everywhere = release.one("ClusterRole", "-provisioner")["rules"]
    roles = {
        manifest["metadata"]["name"].rpartition("-")[2] for manifest in release.of("ClusterRole")
    }
    assert roles == {"provisioner", "tenant", "driver"}
    for rule in everywhere:
        if "clusterroles" in rule["resources"]:
            assert rule["verbs"] == ["bind"]
            assert len(rule["resourceNames"]) == 2
        assert not {"roles", "secrets", "pods"} & set(rule["resources"])
        assert "*" not in rule["verbs"] + rule["resources"]


def test_workers_leave_clusters_to_the_provisioner() -> None:
    pods = dict(rendered("everything").pods())
    (worker,) = [
        container for container in containers(pods["worker"]) if container["name"] == "worker"
    ]
    (ours,) = [
        container
        for container in containers(pods["provisioner"])
        if container["name"] == "provisioner"
    ]
    assert worker["command"][-2:] == ["--exclude-queues", "clusters"]
    assert ours["command"][-2:] == ["--queues", "clusters"]
    assert "--exclude-queues" not in str(dict(rendered("minimal").pods())["worker"])
