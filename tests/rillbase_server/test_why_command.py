"""How the command `why` prints times."""

from __future__ import annotations

import json

import pytest

from rillbase_server import why_command
from tests import http_receiver


def test_an_approximate_time_is_printed_as_such(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    step = {"state": "passed", "detail": "…", "at": "2026-05-01T12:00:20.091+00:00"}
    trace = {
        "collection": "todos",
        "document": "a",
        "version": 1,
        "summary": "The client has received the event.",
        "steps": [
            {**step, "title": "Written", "facts": {}},
            {**step, "title": "Sent", "facts": {"time_is_approximate": True}},
        ],
    }
    monkeypatch.setenv("COLUMNS", "100")
    with http_receiver.receiver() as server:
        server.answer(200, json.dumps(trace).encode())
        assert why_command.main(["s", "a", "--url", server.url, "--key", "rbk"]) == 0
    printed = capsys.readouterr().out.splitlines()
    written, sent = (line for line in printed if "12:00:20.091" in line)
    assert "about" not in written
    assert "about 12:00:20.091" in sent
