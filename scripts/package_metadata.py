"""The requirements of the package `rillbase-server`, which hatchling asks for when it builds it.

They are those of the lock files: an installation has the versions that the checks have used.
Spark is an extra, because it comes as source and takes 0.5 GB. The builder loads this file by its
path, so it imports nothing of the project.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ModuleNotFoundError:  # outside a build
    MetadataHookInterface = object

PIN = re.compile(r"^([A-Za-z0-9._-]+==[^\s;\\]+(?: ; [^\\\n]+)?)", re.MULTILINE)
NAME = re.compile(r"^[A-Za-z0-9._-]+", re.MULTILINE)
#: Built from this repository as well, in the same version.
OURS = ("rillbase-native", "rillbase-storage-node")


class PackageMetadata(MetadataHookInterface):  # type: ignore[misc]
    """Adds what `pyproject.toml` declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        requirements = Path(self.root) / "requirements"
        metadata["dependencies"] = dependencies(requirements, metadata["version"])
        metadata["optional-dependencies"] = {"spark": spark(requirements)}


def dependencies(requirements: Path, version: str) -> list[str]:
    """Return everything of the server's lock, the launcher's own packages, and ours."""
    # Without the lines that include other files, which are the server's, and the documentation's.
    direct = NAME.findall((requirements / "runtime.in").read_text())
    launcher = {name for name in direct if name != "pyspark"}
    added = [pin for pin in _pins(requirements / "runtime.txt") if _name(pin) in launcher]
    return [
        *(f"{name}=={version}" for name in OURS),
        *sorted({*_pins(requirements / "server.txt"), *added}),
    ]


def spark(requirements: Path) -> list[str]:
    """Return what Spark needs in addition."""
    return sorted({*_pins(requirements / "spark.txt")} - {*_pins(requirements / "server.txt")})


def _pins(lock: Path) -> list[str]:
    return [pin.strip() for pin in PIN.findall(lock.read_text())]


def _name(pin: str) -> str:
    return pin.partition("==")[0]
