"""Run a step of the checks unless it has passed with the same files:
``python -m scripts.run_if_changed STEP COMMAND…``.

A step depends on the product and on what STEPS adds. The hash of these files is recorded in the
cache folder, outside the checkout, when the command has succeeded.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.provision import fingerprint
from scripts.provision.places import CHECKOUT, cache

#: What runs in every started Rillbase, what it is built from, and what tests share.
PRODUCT = (
    "foundation",
    "tenants",
    "data_plane",
    "connections",
    "storage_engine",
    "documents",
    "realtime",
    "aggregates",
    "analytics",
    "sources",
    "platform",
    "native",
    "requirements",
    "manage.py",
    "pyproject.toml",
    "Makefile",
    "scripts/provision",
    ":(glob)tests/*.py",
)
#: By step: the further paths that it depends on, as git's patterns.
STEPS = {
    "kube": (
        "helm",
        "images",
        "scripts/kube_tools.py",
        "docs/operations/kubernetes.md",
        "tests/kube",
        "tests/realtime",
        "tests/documents",
        "tests/analytics",
    ),
    "examples": (
        "sdk",
        "examples",
        "README.md",
        "docs",
        "console/package-lock.json",
        "tests/examples",
        "tests/documentation",
        "tests/sources",
    ),
}


def inputs(step: str, checkout: Path = CHECKOUT) -> list[Path]:
    """Return the files that a step depends on, committed or not."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    listed = subprocess.run(
        [*command, *PRODUCT, *STEPS[step]], cwd=checkout, check=True, capture_output=True, text=True
    ).stdout
    paths = {checkout / name for name in listed.split("\0") if name}
    return sorted(path for path in paths if path.is_file())


def record(step: str, checkout: Path = CHECKOUT) -> Path:
    """Return the file that exists if the step has passed with these files."""
    files = inputs(step, checkout)
    return cache() / "passed" / f"{step}-{fingerprint.of_files(files, root=checkout)}"


def run(step: str, command: Sequence[str], checkout: Path = CHECKOUT) -> int:
    """Run the command unless the step has passed; return its exit code."""
    passed = record(step, checkout)
    if passed.exists():
        print(f"Skipped: it passed with the same files at {passed.read_text().strip()}.")
        return 0
    code = subprocess.run(command, cwd=checkout, check=False).returncode
    if code == 0:
        passed.parent.mkdir(parents=True, exist_ok=True)
        passed.write_text(datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds") + "\n")
    return code


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in STEPS:  # noqa: PLR2004 -- the step and a command
        sys.exit(f"usage: python -m scripts.run_if_changed {{{','.join(STEPS)}}} COMMAND…")
    sys.exit(run(sys.argv[1], sys.argv[2:]))
