"""The native module for Python and the storage node, built once per state of their sources. Both
are cached, the module as a wheel.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from scripts.provision import fingerprint
from scripts.provision.places import ENVIRONMENT, ENVIRONMENT_PYTHON, NATIVE, cache, cargo_target
from scripts.provision.steps import SetupSteps, Word
from scripts.provision.tools import NETWORK_ADVICE, Tools

MANIFEST = NATIVE / "Cargo.toml"
BINDING = NATIVE / "python" / "Cargo.toml"
NODE_PACKAGE = "rillbase-storage-node"
NODE = "rillbase-node"
INSTALLED_NODE = ENVIRONMENT / "bin" / NODE
SOURCE_SUFFIXES = frozenset({".rs", ".toml", ".lock", ".pyi"})
# Build products, and programs that are only built manually: neither affects the module.
SKIPPED_FOLDERS = frozenset({"target", "fuzz", "loom", "tests", "benches"})
WHEELS_KEPT = 5


def sources() -> Iterator[Path]:
    for folder, names, files in os.walk(NATIVE):
        names[:] = [name for name in names if name not in SKIPPED_FOLDERS]
        for name in files:
            if Path(name).suffix in SOURCE_SUFFIXES:
                yield Path(folder, name)


def made_from() -> str:
    return fingerprint.of_files(sources(), root=NATIVE)


def is_installed() -> bool:
    """Whether the storage node is installed; older setups did not install it."""
    return INSTALLED_NODE.exists()


def install(steps: SetupSteps, tools: Tools) -> None:
    """Install both, and build them first unless they are cached for the same sources."""
    folder = cache() / "wheels" / made_from()
    if not (folder / NODE).exists():
        with steps.step("Building the native module and the storage node"):
            _build(steps, tools, folder)
    (wheel,) = folder.glob("*.whl")
    with steps.step("Installing the native module"):
        command: list[Word] = [
            tools.uv,
            "pip",
            "install",
            "--no-config",
            "--python",
            ENVIRONMENT_PYTHON,
        ]
        steps.run([*command, "--offline", "--no-deps", "--reinstall", wheel])
    # A running node continues to use the file from which it was started.
    INSTALLED_NODE.unlink(missing_ok=True)
    shutil.copy2(folder / NODE, INSTALLED_NODE)
    os.utime(folder)
    _forget_old_wheels(folder.parent)


def _build(steps: SetupSteps, tools: Tools, folder: Path) -> None:
    fetch: list[Word] = ["cargo", "fetch", "--locked", "--manifest-path", MANIFEST]
    if not steps.attempt([*fetch, "--offline"]) and not steps.attempt(fetch):
        raise steps.failed(NETWORK_ADVICE)
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    build: list[Word] = [
        tools.maturin,
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        BINDING,
    ]
    variables = {"CARGO_TARGET_DIR": str(cargo_target()), "CARGO_NET_OFFLINE": "true"}
    steps.run([*build, "--interpreter", ENVIRONMENT_PYTHON, "--out", partial], **variables)
    node: list[Word] = ["cargo", "build", "--release", "--locked", "--package", NODE_PACKAGE]
    steps.run([*node, "--manifest-path", MANIFEST], **variables)
    shutil.copy2(cargo_target() / "release" / NODE, partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def _forget_old_wheels(wheels: Path) -> None:
    by_use = sorted(wheels.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in by_use[WHEELS_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)
