"""The packages of a release, and empty environments to install them in."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scripts.provision import tools
from scripts.provision.places import cache
from scripts.provision.steps import SetupSteps
from scripts.release.build import LOCK
from tests.launcher_command import environment, reachable_directory

TIMEOUT_S = 900.0


@dataclass(frozen=True)
class Machine:
    """A user's machine: packages, a folder of its own, and nothing of this checkout."""

    packages: Path
    folder: Path
    uv: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def package(self, pattern: str) -> Path:
        (package,) = self.packages.glob(pattern)
        return package

    def run(self, argv: Sequence[object], cwd: Path | None = None) -> str:
        """Run a program to its end, and return its output."""
        done = subprocess.run(
            [str(word) for word in argv],
            cwd=cwd or self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-6000:]
        return done.stdout

    def environment(self, name: str, *packages: object) -> Path:
        """Make an empty environment with these packages; return its Python."""
        python = self.folder / name / "bin" / "python"
        if not python.exists():
            self.run([self.uv, "venv", "--no-config", self.folder / name])
            install = [self.uv, "pip", "install", "--no-config", "--python", python]
            self.run([*install, "--find-links", self.packages, *packages])
        return python


@pytest.fixture(scope="session")
def release() -> Path:
    """The folder with the release, which `make release` has built."""
    folder = os.environ.get("RILLBASE_RELEASE")
    if not folder:
        pytest.skip("RILLBASE_RELEASE does not say where the release is: make release")
    return Path(folder)


@pytest.fixture(scope="session")
def machine(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    steps = SetupSteps(tmp_path_factory.mktemp("tools") / "log")
    uv = tools.install(steps).uv
    foreign = ("PYTHON", "VIRTUAL_ENV", "UV_", "PIP_")
    inherited = {
        name: value for name, value in environment().items() if not name.startswith(foreign)
    }
    with reachable_directory() as folder:
        # Servers that root starts run as nobody, who has to reach what is installed.
        caches = {"UV_CACHE_DIR": str(folder / "uv")} if os.geteuid() == 0 else {}
        tools_of = {"PIPX_HOME": str(folder / "pipx"), "PIPX_BIN_DIR": str(folder / "bin")}
        yield Machine(release, folder, uv, inherited | caches | tools_of)


@pytest.fixture(scope="session")
def pipx() -> Path:
    """The program, which is installed with what builds the release."""
    result = sorted(cache().glob("tools/release-*/complete"), key=lambda path: path.stat().st_mtime)
    program = result[-1].parent / "bin" / "pipx" if result else None
    if program is None or not shutil.which(program):
        pytest.skip(f"pipx is not installed: {LOCK.name} names it, and make release installs it")
    return program
