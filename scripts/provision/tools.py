"""The two pinned tools that install and build: uv and maturin.

All checkouts share them in the cache, in a folder named by their fingerprint. pip installs them,
because it is the only installer that comes with Python.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts.provision import fingerprint
from scripts.provision.places import REQUIREMENTS, cache
from scripts.provision.steps import SetupSteps, Word

LOCK_FILE = REQUIREMENTS / "bootstrap.txt"
NETWORK_ADVICE = "\n  The first setup needs the package registries; later ones work offline."


@dataclass(frozen=True, slots=True)
class Tools:
    """Paths of the installed programs."""

    uv: Path
    maturin: Path


def base_python() -> Path:
    """Return the base interpreter of the current environment."""
    return Path(getattr(sys, "_base_executable", None) or sys.executable)


def install(steps: SetupSteps) -> Tools:
    """Install the tools unless they are present."""
    made_from = fingerprint.of_files([LOCK_FILE], root=REQUIREMENTS)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache() / "tools" / f"{version}-{made_from}"
    tools = Tools(uv=folder / "bin" / "uv", maturin=folder / "bin" / "maturin")
    complete = folder / "complete"
    if complete.exists() and os.access(tools.uv, os.X_OK) and os.access(tools.maturin, os.X_OK):
        return tools
    with steps.step("Fetching the installer"):
        shutil.rmtree(folder, ignore_errors=True)
        steps.run([base_python(), "-m", "venv", folder])
        pip: list[Word] = [
            folder / "bin" / "python",
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
        ]
        only_what_is_locked = ["--require-hashes", "--only-binary", ":all:", "--no-deps"]
        if not steps.attempt([*pip, *only_what_is_locked, "-r", LOCK_FILE]):
            raise steps.failed(NETWORK_ADVICE)
        complete.touch()
    return tools
