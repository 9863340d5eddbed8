"""Runs `python manage.py …` as a user does, separately from the test run's servers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_S = 60.0
OURS = (
    "RILLBASE_",
    "DATABASE_",
    "REDIS_URL",
    "STORAGE_URL",
    "BROKER_URL",
    "LIMITS_URL",
    "EVENTS_URL",
    "DJANGO_",
)


def environment(**changes: str) -> dict[str, str]:
    """The current environment without Rillbase's settings, plus `changes`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return kept | changes


def argv(*arguments: object) -> list[str]:
    return [sys.executable, str(ROOT / "manage.py"), *map(str, arguments)]


def run(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        argv(*arguments),
        env=env or environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@contextmanager
def reachable_directory() -> Iterator[Path]:
    """A short, empty directory that the servers' account can access even if the tests run as
    root.
    """
    path = Path(tempfile.mkdtemp(prefix="rb-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def processes_below(directory: Path) -> Sequence[str]:
    """Return the command lines of all processes that mention `directory` or work in it."""
    items = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            where = str((entry / "cwd").readlink())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if int(entry.name) != os.getpid() and (
            str(directory) in command or str(directory) in where
        ):
            items.append(f"{entry.name} {command}")
    return items
