"""A run of the tests leaves no temporary files but those that show why a test failed."""

from __future__ import annotations

from pathlib import Path

from tests.pytest_run import run_tests

LEAVING = """
import tempfile

def test_leaves_a_folder(tmp_path):
    tempfile.mkdtemp()
    (tmp_path / "seen").touch()
"""


def test_files_of_a_run_are_removed_at_its_end(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    variables = {"TMPDIR": str(temporary), "PYTEST_DEBUG_TEMPROOT": str(temporary)}
    done = run_tests(tmp_path, LEAVING, plugins="-p tests.environment", **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    (runs,) = temporary.iterdir()
    assert runs.name.startswith("pytest-of-")
