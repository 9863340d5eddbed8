"""Build the tools of the Kubernetes tests: ``python -m scripts.kube_tools [GROUP…]``.

Groups: `helm`; `compose` (reads compose files as Docker does); `kubernetes` (API server, controller
manager, scheduler, etcd, kubectl: about ten minutes on two cores, once); `schemas` (strict JSON
schemas of every object that the chart may render, for each supported version of Kubernetes). All
are built from Go modules pinned in tests/kube/tools or here, and are cached outside the checkout.
Without them, the tests that need them are skipped with a message.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from scripts.provision import fingerprint
from scripts.provision.places import CHECKOUT, cache

TOOLS = CHECKOUT / "tests" / "kube" / "tools"
#: By group: the folder of its module, and the packages to build.
PROGRAMS = {
    "helm": ("helm.sh/helm/v3/cmd/helm",),
    "compose": ("github.com/compose-spec/compose-go/v2/cmd",),
    "kubernetes": (
        "go.etcd.io/etcd/server/v3",
        "k8s.io/kubernetes/cmd/kubectl",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        "k8s.io/kubernetes/cmd/kube-scheduler",
        "k8s.io/kubernetes/cmd/kube-apiserver",
    ),
}
#: Without this, a program would be named after the last part of its package.
RENAMED = {
    "go.etcd.io/etcd/server/v3": "etcd",
    "github.com/compose-spec/compose-go/v2/cmd": "compose",
}
KUBERNETES = "v1.36.3"
#: The versions of Kubernetes that the chart supports.
SUPPORTED = ("v1.34.4", "v1.35.4", "v1.36.3")
#: Modules that define further kinds, and the folders with their definitions.
EXTENSIONS = {
    "github.com/prometheus-operator/prometheus-operator@v0.85.0": (
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
    "sigs.k8s.io/gateway-api@v1.4.1": (
        "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
    ),
}
GROUPS = (*PROGRAMS, "schemas")


def folder(group: str) -> Path:
    """Return the folder of a group; it changes with the group's sources."""
    if group == "schemas":
        made_from = hashlib.sha256(repr((SUPPORTED, EXTENSIONS)).encode()).hexdigest()[:16]
    else:
        files = [TOOLS / group / "go.mod", TOOLS / group / "go.sum"]
        made_from = fingerprint.of_files(files, root=CHECKOUT)
    return cache() / "kube" / f"{group}-{made_from}"


def program(group: str, name: str) -> Path | None:
    """Return a program of a group, if it was built."""
    path = folder(group) / name
    return path if (folder(group) / "complete").exists() and os.access(path, os.X_OK) else None


def helm() -> Path | None:
    """Return the helm that was built, or the system's."""
    own = shutil.which("helm")
    return program("helm", "helm") or (Path(own) if own else None)


def schemas() -> Path | None:
    """Return the folder of schemas, with a folder for each version of Kubernetes."""
    return folder("schemas") if (folder("schemas") / "complete").exists() else None


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the tools for the Kubernetes tests.")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="default: all")
    for group in parser.parse_args().groups or GROUPS:
        target = folder(group)
        if not (target / "complete").exists():
            if shutil.which("go") is None:
                print(f"{group} is built with Go: sudo apt-get install golang", file=sys.stderr)
                return 1
            print(f"building {group} in {target}", flush=True)
            target.mkdir(parents=True, exist_ok=True)
            if group == "schemas":
                _make_schemas(target)
            else:
                _build(group, target)
            (target / "complete").touch()
        print(f"{group}: {target}")
    return 0


def _build(group: str, target: Path) -> None:
    """Build the programs one after the other; existing ones are kept."""
    for package in PROGRAMS[group]:
        name = RENAMED.get(package, package.rpartition("/")[2])
        if (target / name).exists():
            continue
        print(f"  {name}", flush=True)
        command = ["go", "build", "-trimpath", "-p", "2", f"-ldflags={_linker_flags(group)}"]
        command += ["-o", str(target / f"{name}.new"), package]
        subprocess.run(command, cwd=TOOLS / group, check=True)
        (target / f"{name}.new").rename(target / name)


def _linker_flags(group: str) -> str:
    """Return the linker's flags, which set the version that Kubernetes' programs report."""
    if group != "kubernetes":
        return "-s -w"
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    facts = {
        "gitVersion": KUBERNETES,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "0" * 40,
        "buildDate": "2026-01-01T00:00:00Z",
    }
    settings = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in facts.items()]
    return " ".join(["-s -w", *settings])


def _make_schemas(target: Path) -> None:
    """Fetch the modules into a temporary folder: only small parts of them are needed."""
    with tempfile.TemporaryDirectory(prefix="kube-schemas-") as directory:
        extensions = dict(_extension_schemas(Path(directory)))
        for version in SUPPORTED:
            module = _fetch(Path(directory), f"k8s.io/kubernetes@{version}")
            document = json.loads((module / "api/openapi-spec/swagger.json").read_text())
            made = target / version
            made.mkdir(exist_ok=True)
            for name, schema in {**_core_schemas(document["definitions"]), **extensions}.items():
                (made / f"{name}.json").write_text(json.dumps(schema, separators=(",", ":")))
            print(f"  {version}", flush=True)


def _fetch(directory: Path, module: str) -> Path:
    variables = os.environ | {"GOMODCACHE": str(directory), "GOFLAGS": "-modcacherw"}
    command = ["go", "mod", "download", "-json", module]
    done = subprocess.run(
        command, cwd=directory, env=variables, check=True, capture_output=True, text=True
    )
    return Path(json.loads(done.stdout)["Dir"])


def _extension_schemas(directory: Path) -> Iterator[tuple[str, object]]:
    for module, files in EXTENSIONS.items():
        root = _fetch(directory, module)
        for file in files:
            definition = yaml.safe_load((root / file).read_text())["spec"]
            for version in definition["versions"]:
                name = file_name(definition["group"], version["name"], definition["names"]["kind"])
                yield name, strict(version["schema"]["openAPIV3Schema"])


def file_name(group: str, version: str, kind: str) -> str:
    """Return the name of the schema of a kind."""
    return f"{kind}-{group or 'core'}-{version}".lower()


_KINDS = "x-kubernetes-group-version-kind"


def _core_schemas(definitions: dict[str, dict[str, object]]) -> dict[str, object]:
    made = {name: strict(schema) for name, schema in definitions.items()}
    made["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {"type": ["string", "number"]}
    by_file: dict[str, object] = {}
    for name, schema in definitions.items():
        kinds = schema.get(_KINDS)
        if not isinstance(kinds, list) or len(kinds) != 1:
            continue
        kind = kinds[0]
        needed = _reachable_definitions(made, name)
        by_file[file_name(kind["group"], kind["version"], kind["kind"])] = {
            "$ref": f"#/definitions/{name}",
            "definitions": {name: made[name] for name in sorted(needed)},
        }
    return by_file


def _reachable_definitions(definitions: dict[str, object], name: str) -> set[str]:
    names: set[str] = set()
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += _references(definitions[name])
    return names


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference.rpartition("/")[2]
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def strict(schema: object) -> object:
    """Return a schema that rejects fields unknown to the API server."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        name: strict(value)
        for name, value in schema.items()
        if not (name == "description" and isinstance(value, str))
    }
    if made.pop("x-kubernetes-int-or-string", False) or made.get("format") == "int-or-string":
        return {"type": ["string", "integer"]}
    is_open = made.get("x-kubernetes-preserve-unknown-fields")
    properties = made.get("properties")
    if isinstance(properties, dict) and not is_open:
        made.setdefault("additionalProperties", False)
        if properties.get("metadata") == {"type": "object"}:
            properties["metadata"] = {"type": "object", "additionalProperties": True}
    return made


if __name__ == "__main__":
    sys.exit(main())
