"""``manage.py sign-in-link``: prints a link that signs a user of a running instance in."""

import subprocess
import sys
from pathlib import Path

import psutil

from .data_directory import DataDirectory
from .options import PROGRAM, REPOSITORY
from .problems import ExitCode, LauncherProblem
from .status import read_status

TIMEOUT_S = 60


def print_sign_in_link(data_dir: Path, email: str | None) -> ExitCode:
    """Print a link for a user; without an address, for the user of the demo tenant."""
    done = subprocess.run(
        [
            sys.executable,
            REPOSITORY / "manage.py",
            "issue_sign_in_link",
            *([email] if email else []),
        ],
        env=_environment_of_web(data_dir),
        check=False,
        timeout=TIMEOUT_S,
    )
    return ExitCode.OK if done.returncode == 0 else ExitCode.INTERNAL_ERROR


def _environment_of_web(data_dir: Path) -> dict[str, str]:
    """Return the environment of the instance's web server: its settings and secrets."""
    services = read_status(DataDirectory(data_dir)).services
    pid = next((service.pid for service in services if service.name == "web"), None)
    if pid is None:
        raise LauncherProblem(
            ExitCode.NOT_RUNNING,
            f"No web server of Rillbase is running in {data_dir}.",
            f"Start it with `{PROGRAM} up`, or specify its --data-dir.",
        )
    process = psutil.Process(pid)
    try:
        return process.environ()
    except psutil.AccessDenied:
        raise LauncherProblem(
            ExitCode.WRONG_OWNER,
            f"The web server (pid {pid}) belongs to {process.username()}.",
            f"Run this command as {process.username()}.",
        ) from None
