"""The Node.js quick start works as its page says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.launched import Place
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "node"
SHOWN_WITHIN_S = 30.0
pytestmark = [pytest.mark.examples, pytest.mark.timeout(300)]


def test_the_page_shows_the_program() -> None:
    page = (ROOT / "docs/guide/quickstarts/node.md").read_text()
    assert (EXAMPLE / "tasks.js").read_text() in page


def test_changes_of_another_process_are_shown(place: Place, tmp_path: Path) -> None:
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=EXAMPLE, check=True)
    output = tmp_path / "output"
    with place.up() as launched, output.open("wb") as file:
        ready = launched.ready
        variables = os.environ | {"RILLBASE_URL": ready["url"], "RILLBASE_KEY": ready["api_key"]}

        def shows(pattern: str) -> None:
            wait_until(
                lambda: re.search(pattern, output.read_text()) is not None,
                what=f"{pattern} in the output",
                timeout_s=SHOWN_WITHIN_S,
            )

        def run(*arguments: str) -> int:
            argv = ["node", "tasks.js", *arguments]
            return subprocess.run(
                argv, cwd=EXAMPLE, env=variables, timeout=60, check=False
            ).returncode

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
        finally:
            watching.terminate()
            watching.wait(timeout=30)
