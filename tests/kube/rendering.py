"""The chart as helm renders it, for several typical sets of values."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import kube_tools
from tests import machine

CHART = Path(__file__).resolve().parents[2] / "helm" / "rillbase"
NEWEST = kube_tools.SUPPORTED[-1].removeprefix("v")

Object = dict[str, Any]

MINIMAL = {
    "publicUrl": "https://db.example.com",
    "secrets": {"emailUrl": "smtp://user:mail-password@mail.example.com:587"},
}
_EXTERNAL = {
    "publicUrl": "https://db.example.com",
    "secrets": {
        "emailUrl": "smtps://user:mail-password@mail.example.com",
        "databaseAdminUrl": "postgresql://admin:database-password@db.internal:5433/rillbase",
        "valkeyUrl": "rediss://:valkey-password@valkey.internal:6380/0",
    },
    "database": {"internal": False, "host": "db.internal", "port": 5433, "sslmode": "verify-full"},
    "valkey": {"internal": False, "port": 6380},
    "tracesEndpoint": "http://collector.tracing:4318",
}
_EVERYTHING = {
    **MINIMAL,
    "hosts": ["www.example.com"],
    "trustedProxies": ["10.1.0.0/16"],
    "settings": {"RILLBASE_DEFAULT_PLAN": "standard"},
    "commonLabels": {"team": "data"},
    "commonAnnotations": {"example.com/contact": "data@example.com"},
    "images": {
        "pullSecrets": ["registry"],
        "server": {
            "repository": "registry.example.com/rillbase/server",
            "digest": "sha256:" + "a" * 64,
        },
    },
    "grid": {"master": "kubernetes", "nodeSelector": {"pool": "spark"}},
    "analytics": {"enabled": True, "pipeline": {"master": "kubernetes"}},
    "clusters": {"enabled": True, "images": {"next": "registry.example.com/rillbase/spark:2"}},
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls"},
    "gateway": {"enabled": True, "parents": [{"name": "public", "namespace": "gateways"}]},
    "metrics": {
        "serviceMonitors": {"enabled": True, "labels": {"release": "prometheus"}},
        "alerts": {"enabled": True},
        "dashboards": {"enabled": True},
    },
    "networkPolicies": {"callers": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]},
}
#: Typical values, by name.
MATRIX: Mapping[str, Mapping[str, Any]] = {
    "minimal": MINIMAL,
    "external servers": _EXTERNAL,
    "everything": _EVERYTHING,
    "own secret": {"publicUrl": "https://db.example.com", "secrets": {"existing": "mine"}},
    "small": {
        **MINIMAL,
        "fullnameOverride": "rb",
        "app": {"autoscaling": {"enabled": False}, "replicas": 1},
        "worker": {"replicas": 1},
        "relay": {"replicas": 1},
        "views": {"replicas": 1},
        "sources": {"replicas": 1, "networks": ["10.20.0.0/16"]},
        "analytics": {"enabled": True, "storage": {"existingClaim": "mine"}},
        "networkPolicies": {"enabled": False},
    },
    "object store": {
        **MINIMAL,
        "analytics": {
            "enabled": True,
            "storage": {
                "s3": {
                    "url": "s3://rillbase/analytics",
                    "endpoint": "http://minio.storage:9000",
                    "region": "here-1",
                    "secret": "store-keys",
                }
            },
            "pipeline": {"master": "kubernetes"},
        },
    },
}

every_values = pytest.mark.parametrize("name", MATRIX)


@dataclass(frozen=True)
class Release:
    """All objects of one rendering."""

    objects: list[Object]

    def of(self, *kinds: str) -> list[Object]:
        return [manifest for manifest in self.objects if manifest["kind"] in kinds]

    def one(self, kind: str, end: str) -> Object:
        """Return the object of a kind whose name has this suffix."""
        items = [
            manifest for manifest in self.of(kind) if manifest["metadata"]["name"].endswith(end)
        ]
        assert len(items) == 1, (
            kind,
            end,
            [manifest["metadata"]["name"] for manifest in self.of(kind)],
        )
        return items[0]

    def pods(self) -> Iterator[tuple[str, Object]]:
        """All pods that its objects may create, by part, with their templates."""
        for manifest in self.of("Deployment", "StatefulSet", "Job"):
            yield _part(manifest), manifest["spec"]["template"]
        for manifest in self.of("Pod"):
            yield _part(manifest), manifest
        for manifest in self.of("ConfigMap"):
            if "pod.yaml" in manifest["data"]:
                pod = yaml.safe_load(manifest["data"]["pod.yaml"])
                yield _part(pod), pod


def _part(manifest: Object) -> str:
    part: str = manifest["metadata"]["labels"]["app.kubernetes.io/component"]
    return part


def containers(pod: Object) -> list[Object]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def secret_file(config_map: Object) -> str:
    """Return the path of the secret with which driver and executors authenticate each other."""
    lines = config_map["data"]["spark-defaults.conf"].splitlines()
    (line,) = [line for line in lines if line.startswith("spark.authenticate.secret.file ")]
    path: str = line.split(" ", 1)[1]
    return path


def assert_reads_spark_secret(pod: Object, secret: str, keys: set[str]) -> None:
    """Have a pod find that secret where `secret_file` says, out of a Secret with these keys."""
    (volume,) = [entry for entry in pod["spec"]["volumes"] if entry["name"] == "spark-secret"]
    assert volume["secret"]["secretName"] == secret
    ((key, path),) = [(item["key"], item["path"]) for item in volume["secret"]["items"]]
    assert key in keys
    (mount,) = [
        item
        for container in pod["spec"]["containers"]
        for item in container["volumeMounts"]
        if item["name"] == "spark-secret"
    ]
    assert mount["readOnly"]
    assert f"{mount['mountPath']}/{path}" == "/etc/rillbase/spark-secret/spark-secret"


def helm(
    *arguments: str, values: Mapping[str, Any] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run helm; values go to its standard input."""
    command = [str(machine.helm()), *arguments]
    if values is not None:
        command += ["--values", "-"]
    return subprocess.run(
        command,
        input=yaml.safe_dump(dict(values or {})),
        capture_output=True,
        text=True,
        check=False,
    )


def template(
    values: Mapping[str, Any], release: str = "rb", namespace: str = "data"
) -> subprocess.CompletedProcess[str]:
    arguments = ("template", release, str(CHART), "--namespace", namespace)
    return helm(*arguments, "--kube-version", NEWEST, values=values)


def rendered(name: str) -> Release:
    """Return the rendering of one set of values."""
    return _rendered(name)


@functools.cache
def _rendered(name: str) -> Release:
    done = template(MATRIX[name])
    assert done.returncode == 0, done.stderr
    return Release([manifest for manifest in yaml.safe_load_all(done.stdout) if manifest])


def matches(selector: Object, labels: Object) -> bool:
    wanted = selector.get("matchLabels", {})
    expressions = selector.get("matchExpressions", [])
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        labels.get(expression["key"]) in expression["values"] for expression in expressions
    )


def labels_of_pods(release: Release) -> dict[str, Object]:
    return {part: pod["metadata"]["labels"] for part, pod in release.pods()}
