"""Look up the shipped dependencies in a database of advisories: ``make audit``.

The database is a folder with files or zip archives in the OSV format, which exists for packages of
PyPI, crates.io and npm. No package registry offers it for download, so nothing is fetched: without
the folder, nothing is checked, and the report says so. The exit code is 1 if an advisory applies.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from scripts.provision.places import cache
from scripts.release.bill_of_materials import bill

#: The names of ecosystems in advisories, by kind of package URL.
ECOSYSTEMS = {"pypi": "PyPI", "cargo": "crates.io", "npm": "npm"}

Advisory = dict[str, Any]


@dataclass(frozen=True)
class ShippedPackage:
    """A package in one version, which a release ships or installs."""

    ecosystem: str
    name: str
    version: str


def dependencies() -> list[ShippedPackage]:
    """Return what the bill of materials lists."""
    components: Any = bill("")["components"]
    return [
        ShippedPackage(
            ECOSYSTEMS[component["purl"].removeprefix("pkg:").partition("/")[0]],
            component["name"],
            component["version"],
        )
        for component in components
    ]


def advisories(folder: Path) -> Iterator[Advisory]:
    """Return the advisories in a folder: its JSON files, and those in its archives."""
    for file in sorted(folder.rglob("*.json")):
        yield json.loads(file.read_text())
    for file in sorted(folder.rglob("*.zip")):
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                if name.endswith(".json"):
                    yield json.loads(archive.read(name))


def applies(advisory: Advisory, dependency: ShippedPackage) -> bool:
    """Whether an advisory is about this version of this package."""
    if advisory.get("withdrawn"):
        return False
    return any(
        _is_about(affected["package"], dependency) and _is_affected(affected, dependency.version)
        for affected in advisory.get("affected", [])
        if "package" in affected
    )


def _is_about(package: Any, dependency: ShippedPackage) -> bool:
    return package["ecosystem"] == dependency.ecosystem and _normal(package["name"]) == _normal(
        dependency.name
    )


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_affected(affected: Any, version: str) -> bool:
    if version in affected.get("versions", []):
        return True
    ranges = [entry for entry in affected.get("ranges", []) if entry["type"] != "GIT"]
    return any(_is_within(entry["events"], _ordered(version)) for entry in ranges)


def _is_within(events: Any, version: Version) -> bool:
    """Replay the events of a range in the order of their versions, as the format prescribes."""
    steps = [(kind, text) for event in events for kind, text in event.items() if kind != "limit"]
    steps.sort(key=lambda step: _ordered(step[1]))
    inside = False
    for kind, text in steps:
        reached = version >= _ordered(text)
        if kind == "introduced" and reached:
            inside = True
        elif (kind == "fixed" and reached) or (
            kind == "last_affected" and version > _ordered(text)
        ):
            inside = False
    return inside


def _ordered(text: str) -> Version:
    """Return a version that can be compared. A pre-release that only semver knows precedes all."""
    try:
        return Version(text.partition("+")[0])
    except InvalidVersion:
        release, _, _ = text.partition("-")
        return Version(f"{release}.dev0")


@dataclass(frozen=True)
class AuditReport:
    """What was checked, and what was found."""

    lines: list[str]
    complaints: list[str]


def audit(listed: list[ShippedPackage], database: Path) -> AuditReport:
    """Look up the dependencies in a database."""
    counts: Counter[str] = Counter()
    newest, complaints = "", list[str]()
    for advisory in advisories(database):
        newest = max(newest, advisory.get("modified", ""))
        packages = [item["package"] for item in advisory.get("affected", []) if "package" in item]
        counts.update({package["ecosystem"] for package in packages})
        complaints += [
            f"{package.name} {package.version}: "
            f"{advisory['id']} {advisory.get('summary', '')}".strip()
            for package in listed
            if applies(advisory, package)
        ]
    lines = []
    for ecosystem in ECOSYSTEMS.values():
        number = sum(dependency.ecosystem == ecosystem for dependency in listed)
        state = (
            f"checked against {counts[ecosystem]} advisories"
            if counts[ecosystem]
            else f"not checked: {database} has no advisories"
        )
        lines.append(f"{ecosystem}: {number} packages, {state}")
    lines.append(f"The newest advisory is of {newest}." if newest else "Nothing was checked.")
    return AuditReport(lines, complaints)


def main() -> int:
    parser = argparse.ArgumentParser(description="Look for advisories about dependencies.")
    parser.add_argument("--database", type=Path, default=cache() / "advisories")
    report = audit(dependencies(), parser.parse_args().database)
    print(*report.lines, sep="\n")
    for complaint in report.complaints:
        print(complaint, file=sys.stderr)
    return 1 if report.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
