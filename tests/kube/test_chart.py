"""The rendered chart is valid for Kubernetes, and matches the programs."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from django.core.management import get_commands

from foundation.environment import Environment
from rillbase_server.version import VERSION
from scripts import kube_tools
from tests import machine
from tests.kube.rendering import (
    CHART,
    MATRIX,
    MINIMAL,
    Object,
    assert_reads_spark_secret,
    containers,
    every_values,
    helm,
    labels_of_pods,
    matches,
    rendered,
    secret_file,
    template,
)

pytestmark = pytest.mark.kube


@every_values
def test_helm_finds_no_fault(name: str) -> None:
    done = helm("lint", "--strict", "--quiet", str(CHART), values=MATRIX[name])
    assert done.returncode == 0, done.stdout + done.stderr


@functools.cache
def schema(version: str, kind: str) -> Any:
    text = (machine.schemas(version) / f"{kind}.json").read_text()
    return jsonschema_rs.validator_for(json.loads(text))


def complaints(version: str, manifest: Object) -> list[str]:
    group, _, number = manifest["apiVersion"].rpartition("/")
    validator = schema(version, kube_tools.file_name(group, number, manifest["kind"]))
    where = f"{manifest['kind']} {manifest['metadata']['name']}"
    return [f"{where}: {error.message[:300]}" for error in validator.iter_errors(manifest)]


@pytest.mark.parametrize("version", kube_tools.SUPPORTED)
@every_values
def test_every_supported_kubernetes_accepts_every_field(name: str, version: str) -> None:
    release = rendered(name)
    complaints_found = [
        text for manifest in release.objects for text in complaints(version, manifest)
    ]
    templates = [pod for part, pod in release.pods() if part.endswith("executor")]
    complaints_found += [
        text
        for pod in templates
        for text in complaints(version, {**pod, "metadata": {**pod["metadata"], "name": "x"}})
    ]
    assert complaints_found == []


def test_the_values_schema_rejects_fields_unknown_to_kubernetes() -> None:
    version = kube_tools.SUPPORTED[0]
    deployment = json.loads(json.dumps(rendered("minimal").one("Deployment", "-app")))
    deployment["spec"]["template"]["spec"]["containers"][0]["securityContxt"] = {}
    assert any("securityContxt" in text for text in complaints(version, deployment))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"publicUrl": "http://db.example.com"}, "publicUrl"),
        ({"publicUrl": ""}, "publicUrl"),
        ({"apps": {}}, "apps"),
        ({"app": {"replica": 3}}, "replica"),
        ({"settings": {"RILLBASE_SECRET_KEY": "in the values"}}, "RILLBASE_SECRET_KEY"),
        ({"settings": {"PATH": "/"}}, "PATH"),
        ({"secrets": {"emailUrl": ""}}, "secrets.emailUrl is needed"),
        ({"secrets": {"emailUrl": "log://"}}, "emailUrl"),
        ({"database": {"internal": False}}, "host"),
        ({"database": {"internal": False, "host": "db"}}, "secrets.databaseAdminUrl is needed"),
        ({"gateway": {"enabled": True}}, "parents"),
    ],
)
def test_the_error_names_implausible_values(change: Object, said: str) -> None:
    done = template({**MINIMAL, **change})
    assert done.returncode != 0
    assert said in done.stderr


def test_a_long_release_name_gives_valid_names() -> None:
    done = template(MINIMAL, release="a-release-with-a-name-as-long-as-helm-allows-it-to-be")
    names = [
        manifest["metadata"]["name"] for manifest in yaml.safe_load_all(done.stdout) if manifest
    ]
    assert max(len(name) for name in names) <= 63


def test_the_chart_is_of_the_programs_release() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


def variables(pod: Object) -> set[str]:
    return {
        variable["name"] for container in containers(pod) for variable in container.get("env", [])
    }


@every_values
def test_every_setting_is_one_that_the_programs_read(name: str) -> None:
    known = {field.upper() for field in Environment.model_fields} | {"RILLBASE_NODE_TOKEN"}
    for part, pod in rendered(name).pods():
        ours = {
            variable
            for variable in variables(pod)
            if variable.startswith(("RILLBASE_", "DATABASE_"))
        }
        assert ours <= known, part


@every_values
def test_every_command_is_one_that_there_is(name: str) -> None:
    known = set(get_commands())
    for part, pod in rendered(name).pods():
        for container in containers(pod):
            command = container.get("command", [])
            if command[:2] == ["python", "manage.py"]:
                assert command[2] in known, part


def test_only_the_migrations_log_in_as_the_administrator_of_the_database() -> None:
    for name in ("minimal", "external servers"):
        for part, pod in rendered(name).pods():
            text = json.dumps(pod)
            administers = "database-admin-url" in text or "$(POSTGRES_PASSWORD)" in text
            assert administers == (part == "migrations"), part


@every_values
def test_no_secret_is_anywhere_but_in_the_secret(name: str) -> None:
    others = [manifest for manifest in rendered(name).objects if manifest["kind"] != "Secret"]
    text = json.dumps(others)
    for word in ("mail-password", "database-password", "valkey-password@"):
        assert word not in text


@every_values
def test_spark_drivers_and_executors_authenticate_with_a_file_from_the_secret(name: str) -> None:
    release = rendered(name)
    maps = [
        manifest
        for manifest in release.of("ConfigMap")
        if "spark-defaults.conf" in manifest["data"]
    ]
    own = release.of("Secret")
    for manifest in maps:
        assert secret_file(manifest) == "/etc/rillbase/spark-secret/spark-secret"
    with_files = {"grid", "pipeline"} & {
        manifest["metadata"]["name"].split("-")[-2] for manifest in maps
    }
    parts = {"grid": "executor", "pipeline": "pipeline-executor"}
    for part, pod in release.pods():
        if part in with_files or part in {parts[name] for name in with_files}:
            secret = own[0]["metadata"]["name"] if own else "mine"
            keys = set(own[0]["data"]) if own else {"spark-secret"}
            assert_reads_spark_secret(pod, secret, keys)


def test_an_existing_secret_is_used_and_none_is_created() -> None:
    release = rendered("own secret")
    assert release.of("Secret") == []
    references = [
        variable["valueFrom"]["secretKeyRef"]["name"]
        for _, pod in release.pods()
        for container in containers(pod)
        for variable in container.get("env", [])
        if "secretKeyRef" in variable.get("valueFrom", {})
    ]
    assert set(references) == {"mine"}


@every_values
def test_every_key_that_is_referred_to_is_in_the_secret(name: str) -> None:
    release = rendered(name)
    referred = [
        variable["valueFrom"]["secretKeyRef"]
        for _, pod in release.pods()
        for container in containers(pod)
        for variable in container.get("env", [])
        if "secretKeyRef" in variable.get("valueFrom", {})
    ]
    described = (CHART / "values.yaml").read_text()
    assert all(variable["key"] in described for variable in referred)
    secret_names = {secret["metadata"]["name"] for secret in release.of("Secret")}
    # The keys of an object store are in a Secret of their own, which is not the chart's.
    stranger = {variable["name"] for variable in referred} - secret_names
    assert stranger <= {"mine", "store-keys"}
    for secret in release.of("Secret"):
        name = secret["metadata"]["name"]
        assert {variable["key"] for variable in referred if variable["name"] == name} <= set(
            secret["data"]
        )
        assert secret["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


@every_values
def test_all_but_servers_wait_for_the_migrations(name: str) -> None:
    for part, pod in rendered(name).pods():
        waits = any("await_servers" in c.get("command", []) for c in containers(pod))
        servers = part.startswith(("postgresql", "valkey"))
        never = {"migrations", "helm-test", "executor", "pipeline-executor"}
        assert waits != (servers or part in never), part


def test_an_upgrade_replaces_the_storage_node_then_the_grid_then_the_app_then_the_workers() -> None:
    pods = dict(rendered("minimal").pods())
    waits = {part: pod["spec"]["initContainers"][0]["command"][5:] for part, pod in pods.items()
             if "initContainers" in pod["spec"]}  # fmt: skip
    assert waits["storage-node"] == waits["relay"] == []
    assert waits["grid"] == ["--storage"]
    assert waits["app"] == ["--storage", "--ready", "http://rb-rillbase-grid:8082"]
    assert waits["worker"] == ["--storage", "--ready", "http://rb-rillbase-app:80"]


@every_values
def test_every_selector_matches_at_least_one_pod(name: str) -> None:
    release = rendered(name)
    pods = labels_of_pods(release)
    for manifest in release.of("Deployment", "StatefulSet", "PodDisruptionBudget"):
        selector = manifest["spec"]["selector"]
        complaints_found = [part for part, labels in pods.items() if matches(selector, labels)]
        assert complaints_found == [manifest["metadata"]["labels"]["app.kubernetes.io/component"]]
    for manifest in release.of("NetworkPolicy"):
        assert any(matches(manifest["spec"]["podSelector"], labels) for labels in pods.values())
    for manifest in release.of("HorizontalPodAutoscaler"):
        target = manifest["spec"]["scaleTargetRef"]["name"]
        assert "replicas" not in release.one("Deployment", target)["spec"]


@every_values
def test_each_service_leads_to_a_port_of_its_pods_and_monitors_to_a_service(name: str) -> None:
    release = rendered(name)
    pods = dict(release.pods())
    for service in release.of("Service"):
        part = service["spec"]["selector"]["app.kubernetes.io/component"]
        names = {port["name"] for c in containers(pods[part]) for port in c.get("ports", [])}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= names
    for monitor in release.of("ServiceMonitor"):
        selected = [
            service
            for service in release.of("Service")
            if matches(monitor["spec"]["selector"], service["metadata"]["labels"])
        ]
        ports = {port["name"] for service in selected for port in service["spec"]["ports"]}
        assert {end["port"] for end in monitor["spec"]["endpoints"]} <= ports
        assert len(selected) == 1


def test_clients_are_notified_before_a_pod_is_killed() -> None:
    pod = rendered("minimal").one("Deployment", "-app")["spec"]["template"]["spec"]
    settings = {variable["name"]: variable.get("value") for variable in pod["containers"][0]["env"]}
    assert (settings["RILLBASE_DRAIN_S"], pod["terminationGracePeriodSeconds"]) == ("30", 60)


def test_the_files_of_datasets_are_where_they_are_written_read_and_moved() -> None:
    release = rendered("everything")
    claim = release.one("PersistentVolumeClaim", "-analytics")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    for name, wanted in (("everything", claim["metadata"]["name"]), ("small", "mine")):
        mounted = {}
        for part, pod in rendered(name).pods():
            claims = {
                volume["name"]: volume["persistentVolumeClaim"]["claimName"]
                for volume in pod["spec"].get("volumes", [])
                if "persistentVolumeClaim" in volume
            }
            for mount in pod["spec"]["containers"][0].get("volumeMounts", []):
                if mount["name"] in claims and mount["mountPath"] == "/var/lib/rillbase-analytics":
                    mounted[part] = claims[mount["name"]]
        parts = {"app", "worker", "pipeline"}
        parts |= {"pipeline-executor"} if name == "everything" else set()
        assert mounted == dict.fromkeys(parts, wanted)
    folder = "RILLBASE_ANALYTICS_DIR"
    assert all(folder in variables(pod) for part, pod in release.pods() if part == "app")
    assert all(folder not in variables(pod) for _, pod in rendered("minimal").pods())


def test_the_files_of_datasets_may_be_in_a_store_instead() -> None:
    release = rendered("object store")
    assert not [c for c in release.of("PersistentVolumeClaim") if "analytics" in str(c)]
    for part, pod in release.pods():
        mounts = [mount["name"] for mount in pod["spec"]["containers"][0].get("volumeMounts", [])]
        assert "analytics" not in mounts
        if part in {"app", "worker", "pipeline", "pipeline-executor"}:
            given = {variable["name"]: variable for variable in pod["spec"]["containers"][0]["env"]}
            assert given["RILLBASE_ANALYTICS_DIR"]["value"] == "s3://rillbase/analytics"
            assert given["AWS_ENDPOINT_URL"]["value"] == "http://minio.storage:9000"
            assert given["AWS_REGION"]["value"] == "here-1"
            key = given["AWS_SECRET_ACCESS_KEY"]["valueFrom"]["secretKeyRef"]
            assert key == {"name": "store-keys", "key": "secret-access-key"}
    (rule,) = release.one("NetworkPolicy", "-external")["spec"]["egress"]
    assert rule == {"ports": [{"port": 9000, "protocol": "TCP"}]}


def test_what_is_kept_is_on_volumes_that_outlive_the_release() -> None:
    kept = {
        manifest["metadata"]["name"]: manifest["spec"]["persistentVolumeClaimRetentionPolicy"]
        for manifest in rendered("minimal").of("StatefulSet")
        if "volumeClaimTemplates" in manifest["spec"]
    }
    assert set(kept) == {
        "rb-rillbase-postgresql",
        "rb-rillbase-storage-node",
        "rb-rillbase-valkey-broker",
    }
    assert all(
        policy == {"whenDeleted": "Retain", "whenScaled": "Retain"} for policy in kept.values()
    )


def test_the_files_of_the_chart_are_packed(tmp_path: Path) -> None:
    done = helm("package", str(CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"rillbase-{VERSION}.tgz").exists()


def _mib(quantity: str) -> int:
    return int(quantity[:-2]) * {"Mi": 1, "Gi": 1024}[quantity[-2:]]


@every_values
def test_the_memory_limit_of_an_app_pod_covers_its_settings(name: str) -> None:
    pods = [pod for part, pod in rendered(name).pods() if part == "app"]
    (app,) = [
        container for pod in pods for container in containers(pod) if container["name"] == "app"
    ]
    given = {variable["name"]: variable.get("value", "") for variable in app["env"]}
    messages = Environment.model_fields["rillbase_message_memory_mib"].default
    uploads = int(given["RILLBASE_UPLOAD_WORKERS"]) * int(given["RILLBASE_UPLOAD_MEMORY_MIB"])
    taken = int(given["RILLBASE_LIVE_MEMORY_MIB"]) + messages + uploads
    assert taken <= _mib(app["resources"]["limits"]["memory"]) - 256, "and the server itself"


@pytest.mark.parametrize(
    ("app", "is_refused"),
    [
        ({"uploadWorkers": 3}, True),
        ({"uploadWorkers": 3, "resources": {"limits": {"memory": "4Gi"}}}, False),
        ({"liveMemoryMib": 2048}, True),
        ({"resources": {"limits": {"memory": "1536Mi"}}}, True),
        ({"resources": {"limits": {"memory": "2G"}}}, True),
        ({"uploadWorkers": 9, "resources": {"limits": {"memory": None}}}, False),
    ],
)
def test_a_limit_that_settings_of_an_app_pod_exceed_is_refused(
    app: Object, *, is_refused: bool
) -> None:
    done = template({**MINIMAL, "analytics": {"enabled": True}, "app": app})
    assert (done.returncode != 0) == is_refused, done.stderr
    assert ("app.resources.limits.memory" in done.stderr) == is_refused
