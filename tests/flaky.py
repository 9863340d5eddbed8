"""Run failed tests once more, each alone, and list those that then pass as flaky.

A run passes if each of its failures passes alone, up to a bound. The list is printed at the end and
written to `test-results/flaky.txt`. It is a net under the suite and no excuse: a test in the list
has a fault, or has found one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

MAX_FLAKY = 3
#: More failures than this have one cause, which one test alone will not show.
MAX_RETRIES = 10
TIMEOUT_S = 900.0
#: xdist names the group of a test behind its id.
_GROUP = re.compile(r"@\w+$")


@dataclass(frozen=True)
class Outcome:
    """What became of a test in the whole run, and alone."""

    test: str
    first: str
    passes_alone: bool

    def __str__(self) -> str:
        alone = "passed" if self.passes_alone else "failed"
        label = "FLAKY" if self.passes_alone else "FAILED TWICE"
        return f"{label}: {self.test} (in the run: {self.first}; alone: {alone})"


@dataclass(eq=False)
class RetryPlugin:
    """Collects the failures of a run, and retries them when it has ended."""

    passes_alone: Callable[[str], bool]
    report_file: Path
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
            if is_acceptable(self.outcomes):
                session.exitstatus = pytest.ExitCode.OK
        self.report_file.parent.mkdir(parents=True, exist_ok=True)
        flaky = [f"{outcome}\n" for outcome in self.outcomes if outcome.passes_alone]
        self.report_file.write_text("".join(flaky))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for outcome in self.outcomes:
            terminalreporter.write_line(str(outcome))
        if self.outcomes and all(outcome.passes_alone for outcome in self.outcomes):
            accepted = is_acceptable(self.outcomes)
            result = "accepted" if accepted else f"at most {MAX_FLAKY} are accepted"
            terminalreporter.write_line(f"{len(self.outcomes)} flaky, {result}")


def is_acceptable(outcomes: Iterable[Outcome]) -> bool:
    """Return whether a run passes although these tests failed in it."""
    listed = list(outcomes)
    return 0 < len(listed) <= MAX_FLAKY and all(outcome.passes_alone for outcome in listed)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--retry", action="store_true", help="run failed tests once more, each alone")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.retry and not os.environ.get("PYTEST_XDIST_WORKER"):
        root, marks = config.rootpath, config.option.markexpr
        report_file = root / "test-results" / "flaky.txt"
        plugin = RetryPlugin(lambda test: _passes_alone(test, marks, root), report_file)
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
