"""Builds native programs for measurements, in addition to those that `make` builds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_NATIVE = Path(__file__).resolve().parents[2] / "native"

STORAGE_NODE = "rillbase-storage-node"
#: Programs whose names differ from those of their crates.
_PROGRAMS = {STORAGE_NODE: "rillbase-node"}


def built(package: str, *, example: str | None = None, optimised: bool = True) -> Path:
    """Build a crate's program, or an example of it, and return its path."""
    cache = os.environ.get("RILLBASE_CACHE_DIR") or str(
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rillbase"
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR") or Path(cache) / "target")
    program = _PROGRAMS.get(package, package)
    # Unoptimised programs are those that the tests of all crates have built already: a build of one
    # package chooses other features of shared crates, and would compile these again.
    packages = f"--package={package}" if optimised else "--workspace"
    command = ["cargo", "build", "--quiet", packages]
    command.append(f"--example={example}" if example else f"--bin={program}")
    if optimised:
        command.append("--release")
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    subprocess.run(command, cwd=_NATIVE, env=environment, check=True)
    directory = target / ("release" if optimised else "debug")
    return directory / "examples" / example if example else directory / program
