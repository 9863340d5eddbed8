"""The images, and what each contains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scripts.provision.places import CHECKOUT

FOLDER = CHECKOUT / "images"
#: The version of Debian's python3-minimal. Some locked packages are needed by old versions only.
PYTHON_VERSION = "3.11.2"
_PYTHON = (
    "ca-certificates",
    "libpython3-stdlib",
    "libstdc++6",
    "media-types",
    "python3-minimal",
    "tzdata",
)


@dataclass(frozen=True)
class ContainerImage:
    """One image: Debian's packages, locked packages of PyPI, and wheels of the release."""

    name: str
    debian_packages: tuple[str, ...] = ()
    #: Names of lock files in requirements/.
    locks: tuple[str, ...] = ()
    #: Patterns of wheels in the release's folder.
    wheels: tuple[str, ...] = ()
    #: Further files of images/, copied to /opt.
    programs: tuple[str, ...] = ()

    @property
    def containerfile(self) -> Path:
        return FOLDER / f"{self.name}.Containerfile"


_SERVER = ("rillbase_server-*.whl", "rillbase_native-*.whl")
IMAGES = (
    ContainerImage("server", _PYTHON, ("server.txt",), _SERVER),
    ContainerImage("storage-node", wheels=("rillbase_storage_node-*.whl",)),
    ContainerImage(
        "spark",
        (*_PYTHON, "openjdk-17-jre-headless"),
        ("server.txt", "spark.txt"),
        _SERVER,
        ("spark-entrypoint.sh",),
    ),
)
