"""The objects of a tenant's cluster: what they say, and to whom they belong."""

from __future__ import annotations

import base64
import functools
import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import jsonschema_rs
import pytest
import yaml

from realtime.clusters.kubernetes.cluster_spec import ClusterSpec, GridSpec
from realtime.clusters.kubernetes.objects import render
from realtime.grid.size import GridSize
from scripts import kube_tools
from tests import machine
from tests.kube.rendering import (
    assert_reads_spark_secret,
    containers,
    matches,
    rendered,
    secret_file,
)
from tests.realtime.clusters.cluster_specs import CLUSTER_SPECS, INSTALLATION, TENANT, USUAL

Object = dict[str, Any]
every_cluster_spec = pytest.mark.parametrize("name", CLUSTER_SPECS)


def rendered_objects(cluster: ClusterSpec) -> list[Object]:
    # As the server gets them.
    body: list[Object] = json.loads(json.dumps(render(cluster)))
    return body


def of(objects: list[Object], kind: str) -> list[Object]:
    return [manifest for manifest in objects if manifest["kind"] == kind]


def pods(objects: list[Object]) -> dict[str, Object]:
    """By part: the pods that may come of it."""
    drivers = [manifest["spec"]["template"] for manifest in of(objects, "Deployment")]
    templates = [
        yaml.safe_load(manifest["data"]["pod.yaml"]) for manifest in of(objects, "ConfigMap")
    ]
    return {pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod for pod in drivers} | {
        "executor": templates[0]
    }


@functools.cache
def validator(version: str, kind: str) -> Any:
    text = (machine.schemas(version) / f"{kind}.json").read_text()
    return jsonschema_rs.validator_for(json.loads(text))


@every_cluster_spec
@pytest.mark.kube
@pytest.mark.parametrize("version", kube_tools.SUPPORTED)
def test_every_supported_kubernetes_accepts_every_field(name: str, version: str) -> None:
    objects = rendered_objects(CLUSTER_SPECS[name])
    templates = [{**pod, "apiVersion": "v1", "kind": "Pod"} for pod in pods(objects).values()]
    for manifest in [*objects, *templates]:
        group, _, number = manifest["apiVersion"].rpartition("/")
        kind = kube_tools.file_name(group, number, manifest["kind"])
        errors = [error.message for error in validator(version, kind).iter_errors(manifest)]
        assert errors == [], manifest["kind"]


@every_cluster_spec
def test_the_same_specification_gives_the_same_objects(name: str) -> None:
    assert json.dumps(render(CLUSTER_SPECS[name])) == json.dumps(render(CLUSTER_SPECS[name]))


@every_cluster_spec
def test_every_object_is_labelled_with_tenant_and_part(name: str) -> None:
    objects = rendered_objects(CLUSTER_SPECS[name])
    for manifest in [*objects, *pods(objects).values()]:
        labels = manifest["metadata"]["labels"]
        assert labels["rillbase.dev/tenant"] == "acme"
        assert labels["rillbase.dev/tenant-id"] == str(TENANT)
        assert labels["app.kubernetes.io/instance"] == "rb"
        assert labels["app.kubernetes.io/component"]
    for manifest in objects:
        assert manifest["metadata"]["annotations"]["rillbase.dev/about"]
        assert (
            manifest["kind"] == "Namespace"
            or manifest["metadata"]["namespace"] == f"rb-t-{TENANT.hex}"
        )


def test_two_tenants_have_nothing_in_common() -> None:
    other = rendered_objects(replace(USUAL, tenant_id=uuid4(), slug="other"))
    (ours,) = {manifest["metadata"].get("namespace") for manifest in rendered_objects(USUAL)} - {
        None
    }
    assert ours not in json.dumps(other)
    assert "acme" not in json.dumps(other)


@every_cluster_spec
def test_pods_obey_restricted_pod_security_and_have_read_only_file_systems(name: str) -> None:
    for part, pod in pods(rendered_objects(CLUSTER_SPECS[name])).items():
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        # Only the driver calls the API server.
        assert spec["automountServiceAccountToken"] is (part == "grid")
        for volume in spec["volumes"]:
            assert set(volume) <= {"name", "emptyDir", "configMap", "secret"}
        for container in containers(pod):
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}
    (namespace,) = of(rendered_objects(CLUSTER_SPECS[name]), "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


@every_cluster_spec
def test_driver_and_executors_authenticate_with_a_file_from_the_secret(name: str) -> None:
    objects = rendered_objects(CLUSTER_SPECS[name])
    (secret,) = of(objects, "Secret")
    for pod in pods(objects).values():
        assert_reads_spark_secret(pod, secret["metadata"]["name"], set(secret["data"]))
    for manifest in of(objects, "ConfigMap"):
        assert secret_file(manifest) == "/etc/rillbase/spark-secret/spark-secret"


@every_cluster_spec
def test_secret_values_are_only_in_the_secret(name: str) -> None:
    objects = rendered_objects(CLUSTER_SPECS[name])
    (secret,) = of(objects, "Secret")
    assert base64.b64decode(secret["data"]["EVENTS_URL"]).decode().startswith("redis://:very")
    shown = json.dumps([manifest for manifest in objects if manifest["kind"] != "Secret"])
    assert "very-secret" not in shown
    assert secret["data"]["EVENTS_URL"] not in shown
    assert "very-secret" not in repr(CLUSTER_SPECS[name])


def test_changed_settings_and_secrets_restart_the_driver() -> None:
    def node_settings(cluster: ClusterSpec) -> object:
        (driver,) = of(rendered_objects(cluster), "Deployment")
        return driver["spec"]["template"]["metadata"]["annotations"]["rillbase.dev/settings"]

    assert node_settings(USUAL) == node_settings(replace(USUAL, awake=False))
    assert node_settings(USUAL) != node_settings(
        replace(USUAL, secrets={"EVENTS_URL": "redis://other"})
    )
    assert node_settings(USUAL) != node_settings(replace(USUAL, node_size="medium"))


def test_an_idle_cluster_has_objects_but_no_pods() -> None:
    (awake,), (asleep,) = (
        of(rendered_objects(cluster), "Deployment")
        for cluster in (USUAL, replace(USUAL, awake=False))
    )
    assert (awake["spec"]["replicas"], asleep["spec"]["replicas"]) == (1, 0)
    assert awake["spec"]["template"] == asleep["spec"]["template"]
    assert len(rendered_objects(USUAL)) == len(rendered_objects(replace(USUAL, awake=False)))


@pytest.mark.parametrize(("partitions", "executors"), [(1, 1), (2, 2), (3, 2), (8, 5), (64, 33)])
def test_there_are_slots_for_all_nodes(partitions: int, executors: int) -> None:
    grid = GridSpec(1001, GridSize(partitions))
    settings = spark_settings(rendered_objects(replace(USUAL, grids=(grid,))))
    assert settings["spark.executor.instances"] == str(executors)
    assert executors * int(settings["spark.executor.cores"]) >= partitions + 1


def spark_settings(objects: list[Object]) -> dict[str, str]:
    text = of(objects, "ConfigMap")[0]["data"]["spark-defaults.conf"]
    return dict(line.split(" ", 1) for line in text.splitlines())


@pytest.mark.kube
def test_spark_gets_the_same_settings_as_in_the_chart() -> None:
    """Both run the same program: a setting that one of them needs, the other needs, too."""
    chart = rendered("everything").one("ConfigMap", "-grid-spark")["data"]["spark-defaults.conf"]
    names = {line.split(" ")[0] for line in chart.splitlines() if line and not line.startswith("#")}
    assert set(spark_settings(rendered_objects(USUAL))) == names


def _mib(quantity: str) -> int:
    return int(quantity.removesuffix("Mi"))


@every_cluster_spec
def test_the_quota_has_room_for_another_grid(name: str) -> None:
    cluster = CLUSTER_SPECS[name]
    (quota,) = of(rendered_objects(cluster), "ResourceQuota")
    largest = max(cluster.grids, key=lambda grid: grid.size.nodes)
    grids = [*cluster.grids, largest]
    needed = len(grids) + sum(grid.executors for grid in grids)
    assert int(quota["spec"]["hard"]["pods"]) >= needed + 1
    memory = sum(grid.executors for grid in grids) * cluster.size.memory_mib
    for driver in of(rendered_objects(cluster), "Deployment"):
        (box,) = containers(driver["spec"]["template"])
        memory += _mib(box["resources"]["limits"]["memory"])
    assert _mib(quota["spec"]["hard"]["limits.memory"]) >= memory
    (limits,) = of(rendered_objects(cluster), "LimitRange")[0]["spec"]["limits"]
    assert _mib(limits["max"]["memory"]) >= cluster.size.memory_mib


def test_guaranteed_resources_are_requested_in_full() -> None:
    objects = rendered_objects(CLUSTER_SPECS["large and guaranteed"])
    (box,) = containers(pods(objects)["grid"])
    assert box["resources"]["requests"] == box["resources"]["limits"]
    settings = spark_settings(objects)
    cpu_request = settings["spark.kubernetes.executor.request.cores"]
    assert settings["spark.kubernetes.executor.limit.cores"] == cpu_request


def opens(policy: Object, way: str, pod: Object, peer: Object, port: int) -> bool:
    """Whether a policy lets a pod of the namespace meet another one of it."""
    if not matches(policy["spec"]["podSelector"], pod):
        return False
    side = "from" if way == "ingress" else "to"
    return any(
        any("podSelector" in item and matches(item["podSelector"], peer) for item in rule[side])
        and ("ports" not in rule or port in [item["port"] for item in rule["ports"]])
        for rule in policy["spec"].get(way, [])
        if side in rule
    )


@every_cluster_spec
def test_only_driver_and_executors_can_connect_to_each_other(name: str) -> None:
    objects = rendered_objects(CLUSTER_SPECS[name])
    policies = of(objects, "NetworkPolicy")
    labels = {part: pod["metadata"]["labels"] for part, pod in pods(objects).items()}

    def is_open(caller: Object, server: Object, port: int) -> bool:
        out = any(opens(policy, "egress", caller, server, port) for policy in policies)
        return out and any(opens(policy, "ingress", server, caller, port) for policy in policies)

    assert is_open(labels["executor"], labels["grid"], 7078)
    assert is_open(labels["grid"], labels["executor"], 40_000)
    stranger = {**labels["executor"], "rillbase.dev/tenant-id": str(uuid4())}
    assert not is_open(stranger, labels["grid"], 7078)
    assert not is_open(labels["executor"], labels["grid"], 8082)
    (closed,) = [policy for policy in policies if policy["metadata"]["name"] == "closed"]
    assert closed["spec"]["podSelector"] == {}
    assert closed["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert closed["spec"]["ingress"] == []


def test_pods_of_another_tenants_namespace_cannot_connect() -> None:
    for policy in of(rendered_objects(USUAL), "NetworkPolicy"):
        for rule in policy["spec"].get("ingress", []):
            for peer in rule["from"]:
                spaces = peer.get("namespaceSelector")
                if spaces is not None:
                    forbidden = {"key": "rillbase.dev/tenant-id", "operator": "DoesNotExist"}
                    assert spaces == {"matchExpressions": [forbidden]}


def test_nodes_can_connect_only_to_the_installations_servers() -> None:
    (policy,) = [
        e
        for e in of(rendered_objects(USUAL), "NetworkPolicy")
        if e["metadata"]["name"] == "servers"
    ]
    (rule,) = policy["spec"]["egress"]
    (peer,) = rule["to"]
    home = peer["namespaceSelector"]["matchLabels"]
    assert home == {"kubernetes.io/metadata.name": INSTALLATION.namespace}
    assert [port["port"] for port in rule["ports"]] == [5432, 6379]


def test_accounts_are_bound_to_two_roles_of_the_chart() -> None:
    bindings = {
        manifest["metadata"]["name"]: manifest
        for manifest in of(rendered_objects(USUAL), "RoleBinding")
    }
    assert {name: manifest["roleRef"]["name"] for name, manifest in bindings.items()} == {
        "provisioner": "rb-tenant",
        "grid": "rb-driver",
    }
    (ours,), (driver,) = (bindings[name]["subjects"] for name in ("provisioner", "grid"))
    assert (ours["namespace"], ours["name"]) == ("data", "rb-provisioner")
    assert (driver["namespace"], driver["name"]) == (USUAL.namespace, "grid")
    assert of(rendered_objects(USUAL), "Role") == of(rendered_objects(USUAL), "ClusterRole") == []


def test_each_grid_epoch_has_its_own_driver_and_name() -> None:
    objects = rendered_objects(CLUSTER_SPECS["while it is resized"])
    drivers = of(objects, "Deployment")
    assert [driver["metadata"]["name"] for driver in drivers] == ["grid-1001", "grid-1002"]
    for driver, service in zip(drivers, of(objects, "Service"), strict=True):
        pod = driver["spec"]["template"]
        assert driver["spec"]["strategy"] == {"type": "Recreate"}
        assert service["spec"]["clusterIP"] == "None"
        assert matches({"matchLabels": service["spec"]["selector"]}, pod["metadata"]["labels"])
        epoch = pod["metadata"]["labels"]["rillbase.dev/grid-epoch"]
        assert containers(pod)[0]["command"][-2:] == ["--epoch", epoch]
        others = [other for other in drivers if other is not driver]
        for other in others:
            labels = other["spec"]["template"]["metadata"]["labels"]
            assert not matches({"matchLabels": service["spec"]["selector"]}, labels)
