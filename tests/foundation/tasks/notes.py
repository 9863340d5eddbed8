"""Reads what tasks noted."""

from __future__ import annotations

from pathlib import Path

from tests.waiting import wait_until

TIMEOUT_S = 120.0


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def wait_for_lines(file: Path, expected: list[str]) -> None:
    wait_until(lambda: lines(file) == expected, what=f"{expected} in {file}", timeout_s=TIMEOUT_S)
