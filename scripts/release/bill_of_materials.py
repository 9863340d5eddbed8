"""The software bill of materials of a release, in CycloneDX's JSON format.

It lists what the packages contain or install: the locked Python packages of the server, with Spark,
the crates that the native parts are made of, and the packages of the console.
"""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scripts.provision.places import CHECKOUT, NATIVE, REQUIREMENTS

Component = dict[str, object]
SPECIFICATION = "1.6"
#: The locks of the server and its extra; those of tests and of the documentation ship nothing.
LOCKS = ("server.txt", "spark.txt", "runtime.txt")
_BLOCK = re.compile(
    r"^([A-Za-z0-9._-]+)==([^\s;\\]+)[^\n]*\n((?:\s+--hash=sha256:[0-9a-f]+[^\n]*\n?)+)",
    re.MULTILINE,
)
_HASH = re.compile(r"sha256:([0-9a-f]{64})")


def bill(version: str) -> dict[str, object]:
    """Return the whole document."""
    components = [*_python(), *_crates(), *_console()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components))}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"rillbase@{version}",
                "name": "rillbase",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
    }


def _python() -> Iterator[Component]:
    seen = set[tuple[str, str]]()
    docs = {name for name, *_ in _BLOCK.findall((REQUIREMENTS / "docs.txt").read_text())}
    server = {name for name, *_ in _BLOCK.findall((REQUIREMENTS / "server.txt").read_text())}
    for lock in LOCKS:
        for name, version, hashes in _BLOCK.findall((REQUIREMENTS / lock).read_text()):
            if (name, version) in seen or (name in docs and name not in server):
                continue
            seen.add((name, version))
            component = _component("pypi", name, version)
            # One for each file of the package: wheels of all platforms, and the source.
            component["hashes"] = [
                {"alg": "SHA-256", "content": content} for content in _HASH.findall(hashes)
            ]
            yield component


def _crates() -> Iterator[Component]:
    """Return the crates that the module and the storage node link, on any platform."""
    command = ["cargo", "metadata", "--format-version=1", "--locked"]
    listed = subprocess.run(
        [*command, "--manifest-path", str(NATIVE / "Cargo.toml")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    document = json.loads(listed)
    by_id = {package["id"]: package for package in document["packages"]}
    for identity in sorted(_linked(document["resolve"]["nodes"], by_id)):
        package = by_id[identity]
        if package["source"] is not None:
            component = _component("cargo", package["name"], package["version"])
            if package["license"]:
                component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
            yield component


def _linked(nodes: list[dict[str, Any]], by_id: dict[str, dict[str, Any]]) -> set[str]:
    """Follow what is needed at run time from the two packages that ship."""
    needs = {node["id"]: node["deps"] for node in nodes}
    shipped = ("rillbase-native", "rillbase-storage-node")
    waiting = [identity for identity, package in by_id.items() if package["name"] in shipped]
    linked = set[str]()
    while waiting:
        identity = waiting.pop()
        if identity in linked:
            continue
        linked.add(identity)
        waiting += [
            dependency["pkg"]
            for dependency in needs[identity]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    return linked


def _console() -> Iterator[Component]:
    """Return the packages that the console's build may bundle."""
    lock = json.loads((CHECKOUT / "console" / "package-lock.json").read_text())
    for path, package in sorted(lock["packages"].items()):
        name = path.rpartition("node_modules/")[2]
        if not path or package.get("dev") or package.get("link"):
            continue
        component = _component("npm", name, package["version"])
        if "license" in package:
            component["licenses"] = [{"expression": package["license"]}]
        yield component


def _component(kind: str, name: str, version: str) -> Component:
    location = f"pkg:{kind}/{quote(name, safe='/')}@{version}"
    return {
        "type": "library",
        "bom-ref": location,
        "name": name,
        "version": version,
        "purl": location,
    }


def write(file: Path, version: str) -> None:
    file.write_text(json.dumps(bill(version), indent=1) + "\n")
