"""A failed test shows the logs of its pods."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WAITING = """
def test_waits_in_vain(tmp_path):
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / "grid-7.log").write_text("the API server cannot be reached")
    assert {passes}
"""


def output(folder: Path, *, passes: bool) -> str:
    """Run one test that has a pod with a log."""
    test = folder / "test_one.py"
    test.write_text(WAITING.format(passes=passes))
    command = [sys.executable, "-m", "pytest", "-p", "tests.kube.pod_logs", "-c", os.devnull]
    done = subprocess.run(
        [*command, "--rootdir", str(folder), "-p", "no:django", str(test)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (0 if passes else 1), done.stdout + done.stderr
    return done.stdout


def test_a_failed_test_shows_the_logs_of_its_pods(tmp_path: Path) -> None:
    shown = output(tmp_path, passes=False)
    assert "Log of grid-7" in shown
    assert "the API server cannot be reached" in shown.partition("Log of grid-7")[2]


def test_a_passed_test_shows_none(tmp_path: Path) -> None:
    assert "grid-7" not in output(tmp_path, passes=True)
