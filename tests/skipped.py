"""List the tests that a run skips, by reason. In CI, each reason has to be allowed.

A skipped test proves nothing, and a run that skips a hundred of them passes all the same. So the
last lines say which they are, and with `CI=true` a reason that `tests/allowed_skips.toml` does not
list fails the run.
"""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ALLOWED = Path("tests", "allowed_skips.toml")


@dataclass(eq=False)
class SkipPlugin:
    """Counts the skipped tests of a run."""

    allowed: Mapping[str, str]
    is_strict: bool
    counts: Counter[str] = field(default_factory=Counter)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.counts[_reason(report)] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.counts[_reason(report)] += 1

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Fail last, so that no retry accepts the run."""
        yield
        if self.refused() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def refused(self) -> set[str]:
        """Return the reasons that fail the run."""
        return self.counts.keys() - self.allowed.keys() if self.is_strict else set()

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for reason, count in self.counts.most_common():
            note = f" (NOT ALLOWED by {ALLOWED})" if reason in self.refused() else ""
            terminalreporter.write_line(f"Skipped {count:4}: {reason}{note}")


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    file = config.rootpath / ALLOWED
    allowed = tomllib.loads(file.read_text()) if file.exists() else {}
    reasons = {entry["reason"]: entry["because"] for entry in allowed.get("skips", ())}
    plugin = SkipPlugin(reasons, is_strict=os.environ.get("CI") == "true")
    config.pluginmanager.register(plugin, "skipped")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the text that the test gave. A report has it behind the place of the skip."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
