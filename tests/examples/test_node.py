"""The Node.js quick start shows the changes of other processes."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.waiting import wait_until

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "node"
SHOWN_WITHIN_S = 30.0
pytestmark = [pytest.mark.examples, pytest.mark.timeout(300)]


def test_changes_of_another_process_are_shown(installation: dict[str, str], tmp_path: Path) -> None:
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=EXAMPLE, check=True)
    variables = os.environ | installation
    output = tmp_path / "output"

    def shows(pattern: str) -> None:
        wait_until(
            lambda: re.search(pattern, output.read_text()) is not None,
            what=f"{pattern} in the output",
            timeout_s=SHOWN_WITHIN_S,
        )

    def run(*arguments: str) -> int:
        argv = ["node", "tasks.js", *arguments]
        return subprocess.run(argv, cwd=EXAMPLE, env=variables, timeout=60, check=False).returncode

    with output.open("wb") as file:
        watching = subprocess.Popen(
            ["node", "tasks.js"], cwd=EXAMPLE, env=variables, stdout=file, stderr=file
        )
        try:
            shows("live")
            assert run("add", "Release notes") == 0
            shows(r"\[ \] Release notes")
            (task,) = set(re.findall(r"Release notes  \((.+)\)", output.read_text()))
            assert run("toggle", task) == 0
            shows(r"\[x\] Release notes")
            assert run("toggle", "missing") == 1
            assert run("add") == 1
        finally:
            watching.terminate()
            watching.wait(timeout=30)
