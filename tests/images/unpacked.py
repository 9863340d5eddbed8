"""Images, read from their OCI archives and unpacked as a container engine does."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class UnpackedImage:
    """The files of an image, and what it says about starting it."""

    root: Path
    tag: str
    user: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    environment: dict[str, str]
    directory: str


def unpack(archive: Path, root: Path) -> UnpackedImage:
    """Unpack the layers one over the other, with their owners and permissions."""
    with tarfile.open(archive) as opened:
        (named,) = _json(opened, "index.json")["manifests"]
        manifest = _blob(opened, named["digest"])
        config = _blob(opened, manifest["config"]["digest"])["config"]
        for layer in manifest["layers"]:
            _unpack_layer(opened, layer["digest"], root)
    variables = (each.partition("=") for each in config["Env"])
    return UnpackedImage(
        root=root,
        tag=named["annotations"]["org.opencontainers.image.ref.name"],
        user=config["User"],
        entrypoint=tuple(config.get("Entrypoint") or ()),
        command=tuple(config.get("Cmd") or ()),
        environment={name: value for name, _, value in variables},
        directory=config.get("WorkingDir") or "/",
    )


def _unpack_layer(opened: tarfile.TarFile, digest: str, root: Path) -> None:
    with tarfile.open(fileobj=opened.extractfile(_path(digest)), mode="r|*") as layer:
        for member in layer:
            # The Containerfiles remove nothing, so no layer hides what another one holds.
            assert not Path(member.name).name.startswith(".wh."), member.name
            layer.extract(member, root, numeric_owner=True, filter="fully_trusted")


def _blob(opened: tarfile.TarFile, digest: str) -> dict[str, Any]:
    return _json(opened, _path(digest))


def _json(opened: tarfile.TarFile, name: str) -> dict[str, Any]:
    file = opened.extractfile(name)
    assert file is not None
    loaded: dict[str, Any] = json.load(file)
    return loaded


def _path(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")
