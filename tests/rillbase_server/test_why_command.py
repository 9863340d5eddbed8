"""How the command `why` prints times."""

from __future__ import annotations

import io

from rich.console import Console

from rillbase_server.why_command import _print_trace


def test_an_approximate_time_is_printed_as_such() -> None:
    step = {"state": "passed", "detail": "…", "at": "2026-05-01T12:00:20.091+00:00"}
    trace = {
        "collection": "todos",
        "document": "a",
        "version": 1,
        "summary": "…",
        "steps": [
            {**step, "title": "Written", "facts": {}},
            {**step, "title": "Sent", "facts": {"time_is_approximate": True}},
        ],
    }
    printed = io.StringIO()
    _print_trace(Console(file=printed, width=100), trace, as_json=False)
    written, sent = (line for line in printed.getvalue().splitlines() if "12:00:20.091" in line)
    assert "about" not in written
    assert "about 12:00:20.091" in sent
