"""The web console: its tools, and its build, which includes the JavaScript SDK."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from scripts.provision import fingerprint, javascript, node_packages
from scripts.provision.places import CHECKOUT
from scripts.provision.steps import SetupSteps, Word

PACKAGE = CHECKOUT / "console"
SOURCES = PACKAGE / "src"
BUILT = PACKAGE / "dist"
#: The console uses it to explain errors.
ERRORS_PAGE = CHECKOUT / "docs" / "errors.md"
CONFIGURED_BY = ("index.html", "tsconfig.json", "vite.config.ts", "cities.ts")


def sources() -> Iterator[Path]:
    yield from (PACKAGE / name for name in (*node_packages.LOCKED, *CONFIGURED_BY))
    yield from (path for path in SOURCES.rglob("*") if path.is_file())
    yield ERRORS_PAGE
    yield from javascript.sources()


def made_from() -> str:
    return fingerprint.of_files(sources(), root=CHECKOUT)


def is_built() -> bool:
    return (BUILT / "index.html").exists() and node_packages.link(PACKAGE).exists()


def install(steps: SetupSteps) -> None:
    """Install the locked packages, and build the console."""
    packages = node_packages.install(steps, PACKAGE, "Installing the console's packages")
    with steps.step("Building the web console"):
        partial = BUILT.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        build: list[Word] = [packages / ".bin" / "vite", "build", PACKAGE, "--outDir", partial]
        steps.run([*build, "--logLevel", "warn"])
        shutil.rmtree(BUILT, ignore_errors=True)
        partial.rename(BUILT)
