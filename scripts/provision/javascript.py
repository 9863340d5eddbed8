"""The JavaScript SDK: its tools, and its build."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from scripts.provision import fingerprint, node_packages
from scripts.provision.places import CHECKOUT
from scripts.provision.steps import SetupSteps

PACKAGE = CHECKOUT / "sdk" / "js"
SOURCES = PACKAGE / "src"
BUILT = PACKAGE / "dist"


def sources() -> Iterator[Path]:
    yield from (PACKAGE / name for name in (*node_packages.LOCKED, "tsconfig.json"))
    yield from (path for path in SOURCES.rglob("*") if path.is_file())


def made_from() -> str:
    return fingerprint.of_files(sources(), root=PACKAGE)


def is_built() -> bool:
    return (BUILT / "index.js").exists() and node_packages.link(PACKAGE).exists()


def install(steps: SetupSteps) -> None:
    """Install the locked packages, and build the package."""
    packages = node_packages.install(steps, PACKAGE, "Installing JavaScript packages")
    with steps.step("Building the JavaScript SDK"):
        compiler = packages / ".bin" / "tsc"
        partial = BUILT.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        steps.run([compiler, "--project", PACKAGE / "tsconfig.json", "--outDir", partial])
        shutil.rmtree(BUILT, ignore_errors=True)
        partial.rename(BUILT)
