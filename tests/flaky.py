"""Run failed tests once more, each alone, and list those that then pass as flaky.

A run passes if each of its failures passes alone, up to a bound (see `scripts/flaky_tests.py`).
Tests of one file whose setup failed for one reason, such as a shared fixture, are one failure.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scripts import flaky_tests
from scripts.flaky_tests import MAX_RETRIES, TIMEOUT_S, Outcome

#: xdist names the group of a test behind its id.
_GROUP = re.compile(r"@\w+$")


@dataclass(frozen=True)
class Failure:
    """The phase of a test that failed, and the first line of the reason."""

    phase: str
    cause: str

    def __str__(self) -> str:
        return f"{self.phase}: {self.cause}"


@dataclass(eq=False)
class RetryPlugin:
    """Collects the failures of a run, and retries them when it has ended."""

    pass_alone: Callable[[list[str]], bool]
    root: Path
    #: Lines of the list from a run before this one.
    earlier: list[str]
    failures: dict[str, Failure] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            test = _GROUP.sub("", report.nodeid)
            self.failures.setdefault(test, Failure(report.when, _cause(report)))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Retry after the servers of the run have stopped. An interrupted run is not retried."""
        groups = _by_failed_setup(self.failures)
        if exitstatus == pytest.ExitCode.TESTS_FAILED and len(groups) <= MAX_RETRIES:
            self.outcomes = [
                Outcome(_label(tests), str(self.failures[tests[0]]), self.pass_alone(tests))
                for tests in groups
            ]
            if flaky_tests.is_acceptable(self.outcomes, self.earlier):
                session.exitstatus = pytest.ExitCode.OK
        flaky_tests.append(self.root, self.outcomes)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in flaky_tests.summary(self.outcomes, self.earlier):
            terminalreporter.write_line(line)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--retry", action="store_true", help="run failed tests once more, each alone")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.retry and not os.environ.get("PYTEST_XDIST_WORKER"):
        root, marks = config.rootpath, config.option.markexpr
        earlier = flaky_tests.read(root)
        plugin = RetryPlugin(lambda tests: _pass_alone(tests, marks, root), root, earlier)
        config.pluginmanager.register(plugin, "retry")


def _by_failed_setup(failures: Mapping[str, Failure]) -> list[list[str]]:
    groups: dict[object, list[str]] = {}
    for test, failure in failures.items():
        in_setup = failure.phase == "setup"
        key = (test.split("::", 1)[0], failure.cause) if in_setup else test
        groups.setdefault(key, []).append(test)
    return list(groups.values())


def _label(tests: list[str]) -> str:
    return tests[0] if len(tests) == 1 else f"{tests[0]} and {len(tests) - 1} more"


def _pass_alone(tests: list[str], marks: str, root: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *tests]
    label = _label(tests)
    print(f"\nRunning {label} once more, alone", flush=True)  # noqa: T201 -- in the log of the run
    try:
        done = subprocess.run(
            [*command, "-m", marks],
            cwd=root,
            timeout=TIMEOUT_S,
            check=False,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode != 0:
        print(done.stdout[-20_000:], flush=True)  # noqa: T201 -- in the log of the run
    return done.returncode == 0


def _cause(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash else report.longrepr).strip().splitlines() or ["unknown"]
    return (lines[0] if crash else lines[-1])[:200]
