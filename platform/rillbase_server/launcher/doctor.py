"""``manage.py doctor``: lists what is installed, problems, and how to fix them."""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .account import server_account
from .data_directory import MIB, DataDirectory, find_problem
from .instance_lock import lock_holder
from .options import INSTALLED, UpOptions
from .preflight import (
    EXTERNAL_SERVERS,
    choose_processes_without_spark,
    embedded_servers_problem,
    external_server_problem,
    java_problem,
    java_version,
    missing_packages,
    needed_servers,
    port_problem,
)
from .problems import ExitCode, LauncherProblem

TOOL_TIMEOUT_S = 10.0
SHOWN_PACKAGES = ("django", "celery", "uvicorn", "psycopg")
# Command, purpose, and origin.
BUILD_TOOLS = (
    ("cargo", "builds the native parts", "Install Rust 1.85 or newer: https://rustup.rs"),
)
LATER_TOOLS = (("node", "builds the console; not needed yet"),)


@dataclass(frozen=True)
class Diagnosis:
    """One line of the report."""

    subject: str
    detail: str
    problem: LauncherProblem | None = None


def doctor(options: UpOptions) -> ExitCode:
    """Print the report; the exit code is that of the first problem."""
    findings = list(examine(options))
    console = Console(highlight=False)
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        _add(table, finding)
    console.print(table)
    problems = [finding.problem for finding in findings if finding.problem]
    console.print(f"{len(problems)} problem(s) found." if problems else "No problems found.")
    return problems[0].code if problems else ExitCode.OK


def examine(options: UpOptions) -> Iterator[Diagnosis]:
    """Check everything that a start depends on."""
    directory, account = DataDirectory(options.data_dir), server_account()
    yield Diagnosis("Python", platform.python_version())
    yield Diagnosis("packages", _package_versions(), missing_packages())
    yield from _tools()
    java = java_version()
    note = choose_processes_without_spark()
    yield Diagnosis("java", str(java) if java else "not needed", java_problem())
    yield Diagnosis("spark", note or "installed")
    servers = ", ".join(name for name, _ in needed_servers()) or "none needed"
    yield Diagnosis("embedded servers", servers, embedded_servers_problem(account))
    named = ", ".join(name for name in EXTERNAL_SERVERS if os.environ.get(name))
    yield Diagnosis("external servers", named or "none named", external_server_problem())
    yield Diagnosis("data directory", str(directory.root), find_problem(directory, account))
    yield Diagnosis("free disk space", _free_space(directory))
    holder = lock_holder(directory.lock)
    if holder is not None:
        yield Diagnosis("instance", f"already running (pid {holder.pid})")
    else:
        yield Diagnosis("port", str(options.port), port_problem(options))


def _tools() -> Iterator[Diagnosis]:
    if INSTALLED:
        return
    for command, purpose, fix in BUILD_TOOLS:
        tool_version = _tool_version(command)
        missing = LauncherProblem(
            ExitCode.PREREQUISITE_MISSING, f"{command} is not installed; it {purpose}.", fix
        )
        yield Diagnosis(command, tool_version or purpose, None if tool_version else missing)
    for command, purpose in LATER_TOOLS:
        yield Diagnosis(command, _tool_version(command) or f"not installed ({purpose})")


def _tool_version(command: str) -> str | None:
    path = shutil.which(command)
    if path is None:
        return None
    answer = subprocess.run(
        [path, "--version"], capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False
    )
    lines = (answer.stdout or answer.stderr).splitlines()
    return lines[0] if answer.returncode == 0 and lines else None


def _package_versions() -> str:
    versions = []
    for name in SHOWN_PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(versions)


def _free_space(directory: DataDirectory) -> str:
    existing = next(p for p in (directory.root, *directory.root.parents) if p.exists())
    return f"{shutil.disk_usage(existing).free // MIB} MiB"


def _add(table: Table, finding: Diagnosis) -> None:
    if finding.problem is None:
        table.add_row(Text("✓", style="green"), finding.subject, Text(finding.detail))
        return
    table.add_row(Text("✗", style="bold red"), finding.subject, Text(finding.problem.what))
    if finding.problem.fix:
        table.add_row("", "", Text(finding.problem.fix, style="yellow"))
