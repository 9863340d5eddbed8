"""Shows the logs of the pods of a failed test, and of the other programs that it has started."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

SHOWN_CHARS = 6_000


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if report.failed and isinstance(folder, Path):
        report.sections += sections(folder)
    return report


def sections(folder: Path) -> list[tuple[str, str]]:
    """Return the end of each log below a folder, with a title."""
    logs = {path: path.read_text(errors="replace") for path in sorted(folder.rglob("*.log"))}
    return [
        (f"Log of {path.stem}", text[-SHOWN_CHARS:]) for path, text in logs.items() if text.strip()
    ]
