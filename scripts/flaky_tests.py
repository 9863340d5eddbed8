"""Tests that fail in a run and pass alone: what is accepted, and the list of them.

A run of pytest and one of cargo may follow each other, and share the list. It is a net under the
suite and no excuse: a test in the list has a fault, or has found one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

#: From the folder that the tests run in.
REPORT = Path("test-results", "flaky.txt")
MAX_FLAKY = 3
#: More failures than this have one cause, which one test alone will not show.
MAX_RETRIES = 10
TIMEOUT_S = 900.0


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


def read(folder: Path) -> list[str]:
    """Return the lines of the list."""
    file = folder / REPORT
    return file.read_text().splitlines() if file.exists() else []


def append(folder: Path, outcomes: Collection[Outcome]) -> None:
    """Add the flaky tests to the list."""
    (folder / REPORT).parent.mkdir(parents=True, exist_ok=True)
    with (folder / REPORT).open("a") as report:
        report.writelines(f"{outcome}\n" for outcome in outcomes if outcome.passes_alone)


def is_acceptable(outcomes: Collection[Outcome], earlier: Collection[str]) -> bool:
    """Return whether a run passes although these tests failed in it."""
    few = len(outcomes) + len(earlier) <= MAX_FLAKY
    return few and bool(outcomes) and all(outcome.passes_alone for outcome in outcomes)


def summary(outcomes: Collection[Outcome], earlier: Collection[str]) -> list[str]:
    """Return the last lines of a run: the list of the runs before, its own, and the verdict."""
    lines = [*earlier, *map(str, outcomes)]
    if outcomes and all(outcome.passes_alone for outcome in outcomes):
        accepted = is_acceptable(outcomes, earlier)
        result = "accepted" if accepted else f"at most {MAX_FLAKY} are accepted"
        lines.append(f"{len(lines)} flaky, {result}")
    return lines
