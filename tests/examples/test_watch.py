"""`examples.watch` prints a live query that a terminal can show."""

from __future__ import annotations

import pytest

from examples.watch import ROWS, Screen


def test_the_first_rows_of_a_large_result_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    for start in range(0, 3_000, 1_000):
        items = [{"document": {"_id": number}} for number in range(start, start + 1_000)]
        screen.show({"type": "result", "items": items})
    screen.show({"type": "ready"})
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "_id" in line]) == ROWS
    assert "— and 2,990 more documents" in lines


def test_a_small_result_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.show({"type": "result", "items": [{"document": {"_id": "a"}}]})
    screen.show({"type": "ready"})
    assert capsys.readouterr().out.splitlines() == [
        '  {"_id": "a"}',
        "— watching; every change appears here",
    ]
