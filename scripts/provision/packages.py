"""The checkout's Python environment, with exactly the packages of a lock file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Literal, TypeAlias

from scripts.provision import fingerprint
from scripts.provision.places import ENVIRONMENT, ENVIRONMENT_PYTHON, REQUIREMENTS
from scripts.provision.steps import SetupSteps, Word
from scripts.provision.tools import NETWORK_ADVICE, Tools, base_python

Profile: TypeAlias = Literal["runtime", "dev"]

#: The only packages that are built from source, and their build requirements, also locked.
BUILT = ("pyspark",)
BUILT_WITH = REQUIREMENTS / "build.txt"

#: From the environment's package folder to the checkout, relative, so that both can be moved
#: together.
LINK = "../../../../platform\n"


def lock_file(profile: Profile) -> Path:
    return REQUIREMENTS / f"{profile}.txt"


def made_from(profile: Profile) -> str:
    return fingerprint.of_files([lock_file(profile), BUILT_WITH], root=REQUIREMENTS)


def environment_works() -> bool:
    """Whether the environment's interpreter still starts; its base may have been removed."""
    try:
        process = subprocess.run([ENVIRONMENT_PYTHON, "-c", ""], capture_output=True, check=False)
    except OSError:
        return False
    return process.returncode == 0


def are_compiled() -> bool:
    """Whether the packages have bytecode; those of older setups have none."""
    return any(ENVIRONMENT.glob("lib/python3*/site-packages/django/__pycache__/__init__.*.pyc"))


def is_linked() -> bool:
    """Whether the environment finds the checkout's packages below `platform/`."""
    links = _links()
    return bool(links) and all(file.is_file() and file.read_text() == LINK for file in links)


def link() -> None:
    """Add `platform/` to the path for `python -m benchmarks.NAME`, as `manage.py` does itself."""
    for file in _links():
        file.write_text(LINK)


def _links() -> list[Path]:
    return [folder / "rillbase.pth" for folder in ENVIRONMENT.glob("lib/python3*/site-packages")]


def install(steps: SetupSteps, tools: Tools, profile: Profile) -> None:
    """Create the environment if necessary, and install and remove packages until it matches the
    lock.

    Packages in uv's cache are installed without network access. This is faster, and makes an
    offline setup possible.

    They are compiled to bytecode here: otherwise the first start compiles them, and with
    PYTHONDONTWRITEBYTECODE every start of every process.
    """
    with steps.step(f"Installing Python packages ({profile})"):
        if not environment_works():
            make: list[Word] = [tools.uv, "venv", "--no-config", "--no-project", "--clear"]
            steps.run([*make, "--python", base_python(), ENVIRONMENT])
        sync: list[Word] = [tools.uv, "pip", "sync", "--no-config", "--python", ENVIRONMENT_PYTHON]
        sync += ["--require-hashes", "--only-binary", ":all:", "--compile-bytecode"]
        for package in BUILT:
            sync += ["--no-binary", package]
        sync += ["--build-constraints", BUILT_WITH, lock_file(profile)]
        if not steps.attempt([*sync, "--offline"]) and not steps.attempt(sync):
            raise steps.failed(NETWORK_ADVICE)
