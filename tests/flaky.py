"""Run failed tests once more, each alone, and list those that then pass as flaky.

A run passes if each of its failures passes alone, up to a bound (see `scripts/flaky_tests.py`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scripts import flaky_tests
from scripts.flaky_tests import MAX_RETRIES, TIMEOUT_S, Outcome

#: xdist names the group of a test behind its id.
_GROUP = re.compile(r"@\w+$")


@dataclass(eq=False)
class RetryPlugin:
    """Collects the failures of a run, and retries them when it has ended."""

    passes_alone: Callable[[str], bool]
    root: Path
    #: Lines of the list from a run before this one.
    earlier: list[str]
    failures: dict[str, str] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            test = _GROUP.sub("", report.nodeid)
            self.failures.setdefault(test, f"{report.when}: {_cause(report)}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Retry after the servers of the run have stopped. An interrupted run is not retried."""
        if exitstatus == pytest.ExitCode.TESTS_FAILED and len(self.failures) <= MAX_RETRIES:
            self.outcomes = [
                Outcome(test, first, self.passes_alone(test))
                for test, first in self.failures.items()
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
        plugin = RetryPlugin(lambda test: _passes_alone(test, marks, root), root, earlier)
        config.pluginmanager.register(plugin, "retry")


def _passes_alone(test: str, marks: str, root: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", test]
    print(f"\nRunning {test} once more, alone", flush=True)  # noqa: T201 -- in the log of the run
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
