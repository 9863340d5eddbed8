"""Build a release into a folder, and test what users would install: ``make release``.

The folder gets the packages, checksums, a bill of materials and the changes. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.provision import tools
from scripts.provision.places import CHECKOUT, cache
from scripts.provision.problem import SetUpProblem
from scripts.provision.steps import SetupSteps
from scripts.release import bill_of_materials, build, changes

sys.path.insert(0, str(CHECKOUT / "platform"))

from rillbase_server.version import VERSION

SUMS = "SHA256SUMS"


def main() -> int:
    parser = argparse.ArgumentParser(description="Build and test a release; upload nothing.")
    parser.add_argument("--folder", type=Path, default=CHECKOUT / "dist")
    parser.add_argument("--without-tests", action="store_true", help="only build")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.absolute()
    try:
        _build(folder)
    except (SetUpProblem, changes.NoChanges) as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 1
    return 0 if arguments.without_tests else _test(folder)


def _build(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    steps = SetupSteps(cache() / "logs" / "release.log")
    # Fails early, before anything is built.
    changes.write(folder / f"CHANGES-{VERSION}.md", CHECKOUT / "CHANGELOG.md", VERSION)
    build.build(steps, tools.install(steps), folder)
    with steps.step("Writing the bill of materials and the checksums"):
        bill_of_materials.write(folder / f"rillbase-{VERSION}.cdx.json", VERSION)
        write_sums(folder)


def write_sums(folder: Path) -> None:
    """Write the checksums of all files, in the format of sha256sum."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / SUMS).write_text("".join(lines))


def _test(folder: Path) -> int:
    """Install each package into an empty environment, start it, and run the quick start."""
    command = [sys.executable, "-m", "pytest", "-m", "release", "tests/release"]
    return subprocess.run(
        command, cwd=CHECKOUT, env={**os.environ, "RILLBASE_RELEASE": str(folder)}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
