"""The JavaScript SDK: its tools, kept in the cache by their lock file, and its build.

Node.js looks for packages beside the sources, so the checkout gets a link to the folder in the
cache. All checkouts with the same lock file share one installation.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from scripts.provision import fingerprint
from scripts.provision.places import CHECKOUT, cache
from scripts.provision.steps import Steps, Word
from scripts.provision.tools import NETWORK_ADVICE

PACKAGE = CHECKOUT / "sdk" / "js"
SOURCES = PACKAGE / "src"
BUILT = PACKAGE / "dist"
LINK = PACKAGE / "node_modules"
#: What decides which packages are installed, and from where.
LOCKED = ("package.json", "package-lock.json", ".npmrc")


def sources() -> Iterator[Path]:
    yield from (PACKAGE / name for name in (*LOCKED, "tsconfig.json"))
    yield from (path for path in SOURCES.rglob("*") if path.is_file())


def made_from() -> str:
    return fingerprint.of_files(sources(), root=PACKAGE)


def is_built() -> bool:
    return (BUILT / "index.js").exists() and LINK.exists()


def install(steps: Steps) -> None:
    """Install what the lock file names, and build the package."""
    packages = _packages(steps)
    if LINK.is_symlink() or not LINK.exists():
        LINK.unlink(missing_ok=True)
        LINK.symlink_to(packages)
    with steps.step("Building the JavaScript SDK"):
        compiler = packages / ".bin" / "tsc"
        partial = BUILT.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        steps.run([compiler, "--project", PACKAGE / "tsconfig.json", "--outDir", partial])
        shutil.rmtree(BUILT, ignore_errors=True)
        partial.rename(BUILT)


def _packages(steps: Steps) -> Path:
    """Return the folder with the packages, installing them unless it is there."""
    locked = [PACKAGE / name for name in LOCKED]
    folder = cache() / "node" / fingerprint.of_files(locked, root=PACKAGE)
    packages = folder / "node_modules"
    if packages.exists():
        os.utime(folder)
        return packages
    partial = folder.with_suffix(".partial")
    with steps.step("Installing JavaScript packages"):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for path in locked:
            shutil.copy(path, partial)
        sync: list[Word] = ["npm", "ci", "--prefix", partial, "--no-audit", "--no-fund"]
        # Nothing that packages bring is run while they are installed.
        sync += ["--ignore-scripts"]
        if not steps.attempt([*sync, "--offline"]) and not steps.attempt(sync):
            raise steps.failed(NETWORK_ADVICE)
        partial.rename(folder)
    return packages
