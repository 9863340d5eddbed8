"""How a run reports the tests that it skips."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.pytest_run import run_tests

SKIPPING = """
import pytest

def test_steady():
    pass

@pytest.mark.parametrize("number", range(3))
def test_needs_a_browser(number):
    pytest.skip("there is no browser")

@pytest.mark.skipif(True, reason="there is no tape")
def test_needs_a_tape():
    pass

@pytest.mark.xfail
def test_a_fault():
    assert False
"""
ALLOWED = """
[[skips]]
reason = "there is no tape"
because = "tapes are no longer made"
"""


def run(folder: Path, *arguments: str, source: str = SKIPPING, ci: str = "true") -> str:
    """Run the tests, and return the status and what is listed."""
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "allowed_skips.toml").write_text(ALLOWED)
    done: subprocess.CompletedProcess[str] = run_tests(
        folder, source, *arguments, plugins="-p tests.flaky -p tests.skipped", CI=ci
    )
    listed = [line for line in done.stdout.splitlines() if line.startswith("Skipped ")]
    return "\n".join([str(done.returncode), *listed])


def test_skipped_tests_are_listed_by_reason(tmp_path: Path) -> None:
    listed = "0\nSkipped    3: there is no browser\nSkipped    1: there is no tape"
    assert run(tmp_path, ci="") == listed


@pytest.mark.parametrize("processes", [(), ("--numprocesses", "2")])
def test_in_ci_a_reason_that_is_not_allowed_fails_the_run(
    tmp_path: Path, processes: tuple[str, ...]
) -> None:
    refused = "there is no browser (NOT ALLOWED by tests/allowed_skips.toml)"
    assert run(tmp_path, *processes) == (
        f"1\nSkipped    3: {refused}\nSkipped    1: there is no tape"
    )


def test_in_ci_an_allowed_reason_passes(tmp_path: Path) -> None:
    assert run(tmp_path, "-k", "tape or steady") == "0\nSkipped    1: there is no tape"


def test_a_retry_does_not_accept_what_was_skipped(tmp_path: Path) -> None:
    fails_once = """
import pathlib

def test_fails_once():
    ran = pathlib.Path("ran")
    if not ran.exists():
        ran.touch()
        raise AssertionError("not yet")
"""
    assert run(tmp_path, "--retry", source=SKIPPING + fails_once).startswith("1\n")


def test_a_skipped_file_counts(tmp_path: Path) -> None:
    source = "import pytest\npytest.skip('there is no disk', allow_module_level=True)\n"
    outcome = run(tmp_path, source=source)
    assert outcome.endswith("there is no disk (NOT ALLOWED by tests/allowed_skips.toml)")
