"""The script that runs all checks, in a checkout whose `make` does nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.provision.places import CHECKOUT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which `make` records its targets, and fails for those named in FAILING."""
    for name, text in {
        "bin/make": 'echo "$1" >> made; [ "$1" != "${FAILING:-}" ]',
        # Called as `python -m scripts.run_if_changed STEP COMMAND…`.
        ".venv/bin/python": 'shift 3; exec "$@"',
    }.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    (tmp_path / ".ci").mkdir()
    shutil.copy(CHECKOUT / ".ci" / "run", tmp_path / ".ci")
    return tmp_path


def run(checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", ".ci/run"],
        cwd=checkout,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def timed_steps(output: str) -> list[str]:
    """Return the names in the list of seconds at the end of the output."""
    end = output.rpartition("== Seconds of each step\n")[2]
    return [match[1] for match in re.finditer(r"^ *\d+  (.+)$", end, re.MULTILINE)]


def test_the_seconds_of_each_step_are_printed_at_the_end(checkout: Path) -> None:
    done = run(checkout)
    assert done.returncode == 0
    *steps, all_steps = timed_steps(done.stdout)
    assert [step.partition(":")[0].partition(",")[0] for step in steps] == [
        "Setup",
        "Lint",
        "Documentation",
        "Tests",
        "Kubernetes",
        "Quick starts",
    ]
    assert all_steps == "All steps: passed"
    made = (checkout / "made").read_text().split()
    assert made == ["setup", "lint", "docs", "test", "test-kube", "test-examples"]


def test_a_failed_step_ends_the_run_and_is_the_last_in_the_list(checkout: Path) -> None:
    done = run(checkout, FAILING="docs")
    assert done.returncode == 1
    assert timed_steps(done.stdout)[-2:] == ["Documentation", "All steps: failed"]
    assert (checkout / "made").read_text().split() == ["setup", "lint", "docs"]
