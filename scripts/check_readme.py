"""Check that every command in README's code blocks exists: make targets, manage.py commands, files.

python -m scripts.check_readme
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(?:sh|bash|console|shell)\n(.*?)^```", re.DOTALL | re.MULTILINE)
MAKE = re.compile(r"^\s*\$?\s*make\s+([a-z-]+)", re.MULTILINE)
MANAGE = re.compile(r"manage\.py\s+([a-z_]+)")
MODULE = re.compile(r"python\d?\s+-m\s+(benchmarks\.\w+|scripts\.\w+)")
LAUNCHER = frozenset({"up", "status", "stop", "doctor"})


def main() -> int:
    """Print the problems; return how many there are."""
    text = (ROOT / "README.md").read_text()
    blocks = "\n".join(BLOCK.findall(text))
    complaints = [
        *_missing("make target", MAKE.findall(blocks), _targets()),
        *_missing("manage.py command", MANAGE.findall(blocks), LAUNCHER | _commands()),
        *_missing("module", MODULE.findall(blocks), _modules()),
    ]
    if not MAKE.findall(blocks):
        complaints.append("README shows no make command in a code block")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return len(complaints)


def _missing(kind: str, named: list[str], existing: set[str] | frozenset[str]) -> list[str]:
    return [
        f"README names the {kind} {name!r}, which does not exist"
        for name in named
        if name not in existing
    ]


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def _commands() -> set[str]:
    ours = (ROOT / "platform/rillbase_server/management/commands").glob("[a-z]*.py")
    return {path.stem for path in ours} | {"migrate", "makemigrations", "check", "shell"}


def _modules() -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "benchmarks/*.py", "scripts/*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return {path.removesuffix(".py").replace("/", ".") for path in listed}


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
