"""How a run treats tests that fail once, and tests that fail again."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.pytest_run import run_tests

STEADY = "def test_steady():\n    pass\n"
FAILS_ONCE = """
import pathlib

def test_fails_once_{number}():
    ran = pathlib.Path("ran-{number}")
    if not ran.exists():
        ran.touch()
        raise AssertionError("not yet")
"""
FAILS_TWICE = "def test_fails():\n    assert 1 == 2\n"

FIXTURE_FAILS_ONCE = """
import pathlib

import pytest

@pytest.fixture(scope="module")
def server():
    ran = pathlib.Path("ran")
    if not ran.exists():
        ran.touch()
        raise OSError("did not start")

@pytest.mark.parametrize("number", range(5))
def test_uses_the_server(server, number):
    pass
"""


def run(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_tests(folder, source, "--retry", *arguments, plugins="-p tests.flaky")


def flaky_list(folder: Path) -> str:
    return (folder / "test-results" / "flaky.txt").read_text()


def test_a_run_passes_if_its_failure_passes_alone(tmp_path: Path) -> None:
    done = run(tmp_path, STEADY + FAILS_ONCE.format(number=1))
    assert done.returncode == 0, done.stdout
    expected = "FLAKY: test_some.py::test_fails_once_1 (in the run: call: "
    assert expected in done.stdout
    assert flaky_list(tmp_path).startswith(expected)


def test_processes_of_a_run_leave_the_retry_to_the_first(tmp_path: Path) -> None:
    source = STEADY + FAILS_ONCE.format(number=1)
    done = run(tmp_path, source, "--numprocesses", "2")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("FLAKY: ") == 1


def test_a_run_fails_if_a_test_fails_twice(tmp_path: Path) -> None:
    done = run(tmp_path, FAILS_ONCE.format(number=1) + FAILS_TWICE)
    assert done.returncode == 1
    assert "FAILED TWICE: test_some.py::test_fails " in done.stdout
    assert "FLAKY: test_some.py::test_fails_once_1 " in done.stdout


def test_a_run_fails_with_more_than_three_flaky_tests(tmp_path: Path) -> None:
    done = run(tmp_path, "".join(FAILS_ONCE.format(number=n) for n in range(4)))
    assert done.returncode == 1
    assert "4 flaky, at most 3 are accepted" in done.stdout
    assert len(flaky_list(tmp_path).splitlines()) == 4


def test_tests_that_a_failed_fixture_fails_are_one(tmp_path: Path) -> None:
    done = run(tmp_path, STEADY + FIXTURE_FAILS_ONCE)
    assert done.returncode == 0, done.stdout
    expected = "FLAKY: test_some.py::test_uses_the_server[0] and 4 more (in the run: setup: "
    assert flaky_list(tmp_path).startswith(expected)
    assert len(flaky_list(tmp_path).splitlines()) == 1


def test_flaky_tests_of_a_run_before_count(tmp_path: Path) -> None:
    (tmp_path / "test-results").mkdir()
    earlier = "".join(f"FLAKY: engine --lib test_{n} (in the run: failed)\n" for n in range(3))
    (tmp_path / "test-results" / "flaky.txt").write_text(earlier)
    assert run(tmp_path, STEADY).returncode == 0
    done = run(tmp_path, STEADY + FAILS_ONCE.format(number=1))
    assert done.returncode == 1
    assert "4 flaky, at most 3 are accepted" in done.stdout
    assert done.stdout.index("test_2 (in the run") < done.stdout.index("FLAKY: test_some.py")


def test_a_run_without_failures_has_an_empty_list(tmp_path: Path) -> None:
    assert run(tmp_path, STEADY).returncode == 0
    assert flaky_list(tmp_path) == ""
