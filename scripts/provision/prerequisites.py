"""Prerequisites of the machine, and how to install them.

A tool counts as missing only when a part that needs it is in the checkout.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts.provision.places import CHECKOUT
from scripts.provision.problem import SetUpProblem

ANSWER_TIMEOUT_S = 30

Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that is installed with the system's package manager."""

    name: str
    command: tuple[str, ...]
    """Prints the version."""
    minimum: Version | None
    why: str
    needed_by: tuple[str, ...]
    """Paths in the checkout; while none exists, the tool is not required."""
    debian: str
    macos: str
    spared_by: tuple[str, str] | None = None
    """A setting, name and value, which makes the tool unnecessary."""

    def is_needed(self, checkout: Path) -> bool:
        if self.spared_by is not None and os.environ.get(self.spared_by[0]) == self.spared_by[1]:
            return False
        return any((checkout / path).exists() for path in self.needed_by)

    @property
    def wanted(self) -> str:
        return self.name if self.minimum is None else f"{self.name} {dotted(self.minimum)}+"


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """How a tool was found on this machine."""

    tool: Tool
    needed: bool
    version: Version | None
    present: bool

    @property
    def is_good(self) -> bool:
        new_enough = self.tool.minimum is None or (self.version or (0, 0)) >= self.tool.minimum
        return self.present and new_enough

    @property
    def state(self) -> str:
        if not self.present:
            return "missing"
        return dotted(self.version) if self.version else "present"


TOOLS = (
    Tool(
        "Rust",
        ("cargo", "--version"),
        (1, 85),
        "builds the native module and the storage node",
        ("native",),
        "sudo apt install rustup && rustup default stable",
        "brew install rustup && rustup default stable",
    ),
    Tool(
        "C compiler",
        ("cc", "--version"),
        None,
        "links the native module",
        ("native",),
        "sudo apt install gcc libc6-dev",
        "xcode-select --install",
    ),
    Tool(
        "Node.js",
        ("node", "--version"),
        (20, 16),
        "builds the console and the JavaScript SDK",
        ("console/package.json", "sdk/js/package.json"),
        "sudo apt install nodejs npm",
        "brew install node",
    ),
    Tool(
        "npm",
        ("npm", "--version"),
        None,
        "installs the build tools of the JavaScript SDK",
        ("console/package.json", "sdk/js/package.json"),
        "sudo apt install npm",
        "brew install node",
    ),
    Tool(
        "Java",
        ("java", "-version"),
        (17, 0),
        "runs Spark for the matching grid; not needed with RILLBASE_GRID=processes",
        ("realtime/grid", "analytics"),
        "sudo apt install openjdk-17-jre-headless",
        "brew install openjdk@17",
        ("RILLBASE_GRID", "processes"),
    ),
)


def dotted(version: Version) -> str:
    return ".".join(map(str, version))


def find(tool: Tool, checkout: Path = CHECKOUT) -> ToolCheck:
    """Ask the tool for its version."""
    needed = tool.is_needed(checkout)
    if shutil.which(tool.command[0]) is None:
        return ToolCheck(tool, needed, None, present=False)
    try:
        answer = subprocess.run(
            tool.command, capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        # A stand-in without the program behind it, as macOS has for java and rustup for cargo.
        return ToolCheck(tool, needed, None, present=False)
    match = re.search(r"(\d+)(?:\.(\d+))?", answer.stdout + answer.stderr)
    version = (int(match[1]), int(match[2] or 0)) if match else None
    return ToolCheck(tool, needed, version, present=True)


def demand() -> None:
    """Raise one problem that lists all missing tools."""
    missing = _missing_python_parts()
    for finding in (find(tool) for tool in TOOLS if tool.is_needed(CHECKOUT)):
        if not finding.is_good:
            missing.append(_installation_hint(finding))
    if missing:
        raise SetUpProblem("\n".join(["tools are missing on this machine:", *missing]))


def report() -> bool:
    """Print every tool with its state; return false if a required one is missing or too old."""
    all_good = True
    for finding in map(find, TOOLS):
        if finding.is_good:
            mark, note = "✓", finding.tool.why
        elif finding.needed:
            mark, note, all_good = "✗", _installation_hint(finding), False
        else:
            mark, note = "·", f"not needed yet; {finding.tool.why}"
        print(f"{mark} {finding.tool.wanted:15} {finding.state:10} {note.strip()}")
    return all_good


def _installation_hint(finding: ToolCheck) -> str:
    tool = finding.tool
    state = "is missing" if not finding.present else f"is required, found {finding.state}"
    return (
        f"  {tool.wanted} {state}: it {tool.why}.\n"
        f"    Debian, Ubuntu: {tool.debian}\n"
        f"    macOS:          {tool.macos}"
    )


def _missing_python_parts() -> list[str]:
    """Check for the modules that create environments, which Debian packages separately."""
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return []
    version = dotted((sys.version_info.major, sys.version_info.minor))
    lines = (
        f"  Python's venv and ensurepip modules are missing ({sys.executable}).",
        f"    Debian, Ubuntu: sudo apt install python{version}-venv",
    )
    return ["\n".join(lines)]
