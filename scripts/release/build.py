"""Builds the packages of a release: wheels of the server and of the native parts, and the SDKs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from scripts.provision import fingerprint
from scripts.provision.places import CHECKOUT, ENVIRONMENT_PYTHON, NATIVE, REQUIREMENTS, cache
from scripts.provision.steps import SetupSteps, Word
from scripts.provision.tools import Tools

LOCK = REQUIREMENTS / "release.txt"
#: The oldest glibc that the native wheels run on: 2.17, of 2012.
MANYLINUX = "manylinux2014"
NATIVE_PACKAGES = ("python", "storage_node")
JAVASCRIPT = CHECKOUT / "sdk" / "js"
PYTHON = CHECKOUT / "sdk" / "python"
#: Wheels are archives, which contain times: with a fixed one, equal files give equal wheels.
EPOCH = "1580601600"
_SYMBOL = re.compile(rb"GLIBC_(\d+)\.(\d+)")


def build(steps: SetupSteps, tools: Tools, folder: Path) -> None:
    """Build all packages into a folder. The setup has built the console and the documentation."""
    with steps.step("Installing what builds the release"):
        environment = _environment(steps, tools)
    for package in NATIVE_PACKAGES:
        with steps.step(f"Building the wheel of native/{package}"):
            _build_native(steps, tools, environment, package, folder)
    constraints: list[Word] = ["--no-config", "--require-hashes", "--build-constraints"]
    with steps.step("Building the wheel of the server"):
        wheel: list[Word] = [tools.uv, "build", "--wheel", *constraints, LOCK]
        steps.run([*wheel, "--out-dir", folder, CHECKOUT], SOURCE_DATE_EPOCH=EPOCH)
    with steps.step("Building the Python SDK"):
        sdk: list[Word] = [tools.uv, "build", *constraints, REQUIREMENTS / "build.txt"]
        steps.run([*sdk, "--out-dir", folder, PYTHON], SOURCE_DATE_EPOCH=EPOCH)
    with steps.step("Building the JavaScript SDK"):
        pack: list[Word] = ["npm", "pack", "--silent", "--prefix", JAVASCRIPT]
        steps.run([*pack, "--pack-destination", folder, JAVASCRIPT])
    (folder / ".gitignore").unlink(missing_ok=True)


def _environment(steps: SetupSteps, tools: Tools) -> Path:
    """Return the environment with the locked linker, which the cache keeps."""
    folder = cache() / "tools" / f"release-{fingerprint.of_files([LOCK], root=REQUIREMENTS)}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        steps.run([tools.uv, "venv", "--no-config", "--python", ENVIRONMENT_PYTHON, folder])
        sync: list[Word] = [tools.uv, "pip", "sync", "--no-config", "--require-hashes"]
        steps.run([*sync, "--python", folder / "bin" / "python", LOCK])
        (folder / "complete").touch()
    return folder


def _build_native(
    steps: SetupSteps, tools: Tools, environment: Path, package: str, folder: Path
) -> None:
    command: list[Word] = [tools.maturin, "build", "--release", "--locked", "--out", folder]
    command += ["--manifest-path", NATIVE / package / "Cargo.toml"]
    command += ["--interpreter", ENVIRONMENT_PYTHON]
    if sys.platform == "linux":
        command += ["--zig", "--compatibility", MANYLINUX]
    steps.run(
        command,
        PATH=os.pathsep.join([str(environment / "bin"), os.environ["PATH"]]),
        CARGO_TARGET_DIR=str(cache() / "release-target"),
    )


def oldest_glibc(file: Path) -> str:
    """Return the oldest version of glibc that an unpacked program or module runs on."""
    listed = subprocess.run(
        ["readelf", "--version-info", "--wide", str(file)], check=True, capture_output=True
    ).stdout
    versions = [(int(major), int(minor)) for major, minor in _SYMBOL.findall(listed)]
    return ".".join(map(str, max(versions)))


def packages(folder: Path) -> Iterator[Path]:
    """Return the packages in a release folder."""
    yield from sorted(path for path in folder.iterdir() if path.suffix in {".whl", ".gz", ".tgz"})
