"""The JavaScript SDK's tests and drivers, compiled once for each process of the suite."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

SDK = Path(__file__).resolve().parents[2] / "sdk" / "js"


@cache
def compiled() -> Path:
    """Return the folder with `src` and `test` as JavaScript."""
    # Workers compile beside each other. The folder lies below the package, whose packages it uses.
    folder = SDK / ".build" / os.environ.get("PYTEST_XDIST_WORKER", "main")
    ran = subprocess.run(
        [tool("tsc"), "--project", SDK / "tsconfig.test.json", "--outDir", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, report(ran)
    return folder


def tool(name: str) -> Path:
    """Return a program that the package's lock file names."""
    return SDK / "node_modules" / ".bin" / name


def report(ran: subprocess.CompletedProcess[str]) -> str:
    return f"{ran.stdout}\n{ran.stderr}"
