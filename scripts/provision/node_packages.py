"""The packages of npm's lock files, installed in the cache and linked into the checkout.

Node.js searches for packages beside the sources, so a folder with a `package.json` gets a link to
the folder in the cache. All checkouts with the same lock file share one installation.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from scripts.provision import fingerprint
from scripts.provision.places import cache
from scripts.provision.steps import SetupSteps, Word
from scripts.provision.tools import NETWORK_ADVICE

#: The files that determine which packages are installed, and from where.
LOCKED = ("package.json", "package-lock.json", ".npmrc")


def link(folder: Path) -> Path:
    """Return the path at which a folder's sources search for packages."""
    return folder / "node_modules"


def install(steps: SetupSteps, folder: Path, title: str) -> Path:
    """Link a folder to its packages, install them if necessary, and return their folder."""
    packages = _packages(steps, folder, title)
    there = link(folder)
    if there.is_symlink() or not there.exists():
        there.unlink(missing_ok=True)
        there.symlink_to(packages)
    return packages


def _packages(steps: SetupSteps, source: Path, title: str) -> Path:
    locked = [source / name for name in LOCKED]
    folder = cache() / "node" / fingerprint.of_files(locked, root=source)
    packages = folder / "node_modules"
    if packages.exists():
        os.utime(folder)
        return packages
    partial = folder.with_suffix(".partial")
    with steps.step(title):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for path in locked:
            shutil.copy(path, partial)
        sync: list[Word] = ["npm", "ci", "--prefix", partial, "--no-audit", "--no-fund"]
        # Packages' install scripts are not run.
        sync += ["--ignore-scripts"]
        if not steps.attempt([*sync, "--offline"]) and not steps.attempt(sync):
            raise steps.failed(NETWORK_ADVICE)
        partial.rename(folder)
    return packages
